//! Where the regions of the large clouds and of the shipped profiles are, and whose they are: what limits per provider and
//! per continent refer to, and what a map shows.

use crate::constraints::Groups;
use crate::matrix::Matrix;
use crate::table::{Table, TableError};
use thiserror::Error;

/// Coordinates: cloud regions from public tables under Apache-2.0 and MIT licences (oaustegard's aws-ping, az-scout);
/// continents by the country of the city.
const PLACES: &str = include_str!("../data/places.csv");

/// A region that the shipped table does not know.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("the {kind} of the region `{name}` is not known; give a table `region,{kind}` with a row for every region")]
pub struct PlaceError {
    name: String,
    kind: &'static str,
}

/// A region's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose datacenter it is: `aws`, `azure`, `gcp`.
    pub provider: &'static str,
    /// `africa`, `asia`, `europe`, `north-america`, `oceania` or `south-america`.
    pub continent: &'static str,
    /// Degrees north, in ten-thousandths.
    pub latitude: i32,
    /// Degrees east, in ten-thousandths.
    pub longitude: i32,
}

/// The place of the region called `name`, as `us-east-1` or, where several providers are mixed, `aws:us-east-1`.
pub fn place(name: &str) -> Option<Place> {
    let (provider, region) = name.split_once(':').map_or((None, name), |(provider, region)| (Some(provider), region));
    PLACES.lines().skip(1).find_map(|line| {
        let mut cells = line.split(',');
        let mut next = || cells.next().expect("the shipped table has five columns");
        let (its_provider, its_region, continent) = (next(), next(), next());
        let degrees = |cell: &str| cell.parse().expect("the shipped table has whole numbers");
        let place = Place { provider: its_provider, continent, latitude: degrees(next()), longitude: degrees(next()) };
        (its_region == region && provider.is_none_or(|provider| provider == its_provider)).then_some(place)
    })
}

/// The regions of `matrix` by the column `kind` of a CSV file `region,KIND,…` in which every region has a row. `file` names
/// the text in errors.
pub fn groups_of_table(file: &str, text: &str, matrix: &Matrix, kind: &str) -> Result<Groups, TableError> {
    let table = Table::parse(file, text, matrix, &["region"], &["*"])?;
    table.require_all(matrix)?;
    let column = table.headings.iter().skip(1).position(|heading| heading == kind).map(|column| column + 1);
    let column = column.ok_or_else(|| TableError::NoColumn { file: file.to_owned(), kind: kind.to_owned() })?;
    let cell = |region| table.cell(region, column).expect("the column is there").text().to_owned();
    Ok(Groups::new(kind, table.regions().map(cell)))
}

/// The regions of `matrix` by provider, as far as they are known; else the name of one that is not.
pub fn by_provider(matrix: &Matrix) -> Result<Groups, PlaceError> {
    grouped(matrix, "provider", |place| place.provider)
}

/// The regions of `matrix` by continent, as far as they are known; else the name of one that is not.
pub fn by_continent(matrix: &Matrix) -> Result<Groups, PlaceError> {
    grouped(matrix, "continent", |place| place.continent)
}

fn grouped(matrix: &Matrix, kind: &'static str, group: fn(&Place) -> &'static str) -> Result<Groups, PlaceError> {
    let known = |name: &String| place(name).map(|place| group(&place).to_owned());
    let named = matrix.names().iter().map(|name| known(name).ok_or_else(|| PlaceError { name: name.clone(), kind }));
    Ok(Groups::new(kind, named.collect::<Result<Vec<String>, _>>()?.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::wan;

    fn matrix(profile: &str) -> Matrix {
        Matrix::try_from(&wan::profile(profile).expect("shipped").matrix()).expect("few regions")
    }

    #[test]
    fn every_region_of_a_shipped_profile_has_a_place() {
        for profile in wan::PROFILES {
            for name in profile.matrix().names() {
                assert!(place(name).is_some(), "{name} of {}", profile.name);
            }
        }
    }

    #[test]
    fn regions_are_grouped_by_whose_and_where_they_are() {
        let mixed = matrix("aws_azure_42");
        let providers = by_provider(&mixed).expect("all known");
        assert_eq!(providers.names, ["aws", "azure"]);
        assert_eq!(providers.of.iter().filter(|&&group| group == 1).count(), 21);
        let continents = by_continent(&matrix("paper_gplacer_9")).expect("all known");
        assert_eq!(continents.names, ["north-america", "europe", "asia", "oceania", "south-america"]);
        assert_eq!(continents.of, [0, 0, 0, 1, 2, 2, 2, 3, 4]);
    }

    #[test]
    fn a_table_says_what_the_shipped_one_cannot() {
        let own = Matrix::new(["a", "b"].map(str::to_owned).to_vec(), |_, _| 0).expect("two regions");
        let unknown = by_provider(&own).expect_err("not known").to_string();
        assert_eq!(unknown, "the provider of the region `a` is not known; give a table `region,provider` with a row for every region");
        let text = "region,country,provider\nb,dk,x\na,dk,y\n";
        let groups = groups_of_table("g.csv", text, &own, "provider").expect("valid");
        assert_eq!((groups.names, groups.of), (vec!["y".to_owned(), "x".to_owned()], vec![0, 1]));
        let missing = groups_of_table("g.csv", text, &own, "continent").expect_err("no such column").to_string();
        assert_eq!(missing, "g.csv, row 1: the header has no column `continent`");
    }
}

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
    /// Where it is.
    pub position: Position,
}

/// A point of the globe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
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
        let position = Position { latitude: degrees(next()), longitude: degrees(next()) };
        let place = Place { provider: its_provider, continent, position };
        (its_region == region && provider.is_none_or(|provider| provider == its_provider)).then_some(place)
    })
}

/// The regions of `matrix` by the column `kind` of a CSV file `region,KIND,…` in which every region has a row. `file` names
/// the text in errors.
pub fn groups_of_table(file: &str, text: &str, matrix: &Matrix, kind: &str) -> Result<Groups, TableError> {
    let table = Table::parse(file, text, matrix, &["region"], &["*"])?;
    table.require_all(matrix)?;
    let column = table.column(kind)?;
    let cell = |region| table.cell(region, column).expect("the column is there").text().to_owned();
    Ok(Groups::new(kind, table.regions().map(cell)))
}

/// Where each region of `matrix` is, by the columns `latitude` and `longitude`, in degrees, of a CSV file `region,…` in which
/// every region has a row. `file` names the text in errors.
pub fn positions_of_table(file: &str, text: &str, matrix: &Matrix) -> Result<Vec<Position>, TableError> {
    let table = Table::parse(file, text, matrix, &["region"], &["*"])?;
    table.require_all(matrix)?;
    let (north, east) = (table.column("latitude")?, table.column("longitude")?);
    let degrees = |region, column, most, expected| table.cell(region, column).expect("the column is there").degrees(most, expected);
    let position = |region| {
        Ok(Position {
            latitude: degrees(region, north, 90, "a latitude: degrees from -90 to 90, north positive, with at most four decimals")?,
            longitude: degrees(region, east, 180, "a longitude: degrees from -180 to 180, east positive, with at most four decimals")?,
        })
    };
    table.regions().map(position).collect()
}

/// Where each region of `matrix` is, as far as that is known; else the name of one of which it is not.
pub fn positions(matrix: &Matrix) -> Result<Vec<Position>, PlaceError> {
    let known = |name: &String| place(name).map(|place| place.position);
    matrix.names().iter().map(|name| known(name).ok_or_else(|| PlaceError { name: name.clone(), kind: "latitude,longitude" })).collect()
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

    #[test]
    fn positions_are_shipped_or_given() {
        let nine = positions(&matrix("paper_gplacer_9")).expect("all known");
        assert!(nine.iter().all(|place| place.latitude.abs() < 900_000 && place.longitude.abs() <= 1_800_000));
        let own = Matrix::new(["a", "b"].map(str::to_owned).to_vec(), |_, _| 0).expect("two regions");
        let unknown = positions(&own).expect_err("not known").to_string();
        assert_eq!(
            unknown,
            "the latitude,longitude of the region `a` is not known; give a table `region,latitude,longitude` with a row for every region"
        );
        let read = |rows: &str| positions_of_table("p.csv", &format!("region,latitude,longitude\n{rows}"), &own);
        let position = |latitude, longitude| Position { latitude, longitude };
        assert_eq!(read("b,-33.8688,151.2093\na,52,-0.12\n"), Ok(vec![position(520_000, -1_200), position(-338_688, 1_512_093)]));
        let error = |rows: &str| read(rows).expect_err("a mistake").to_string();
        for bad in ["91", "-90.1", "north", "--1", ""] {
            let expected = "is not a latitude: degrees from -90 to 90, north positive, with at most four decimals";
            assert_eq!(error(&format!("a,1,1\nb,{bad},1\n")), format!("p.csv, row 3 (b), column 2 (latitude): `{bad}` {expected}"));
        }
        assert!(error("a,1,180.5\nb,1,1\n").contains("`180.5` is not a longitude"));
    }
}

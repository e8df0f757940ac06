//! Finding a customer by last name (clauses 2.5.2.2 and 2.6.2.2).

use super::inputs::CustomerChoice;
use crate::client::postgres::{Failure, Session, get};

const BY_LAST_NAME: &str = "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first";

/// The number of the customer chosen. Of several with one last name it is the one in the middle, ordered by first name, rounded up.
pub async fn find(session: &Session, w_id: i32, d_id: i32, choice: &CustomerChoice) -> Result<i32, Failure> {
    let name = match choice {
        CustomerChoice::ById(c_id) => return Ok(*c_id),
        CustomerChoice::ByLastName(name) => name,
    };
    let rows = session.query(BY_LAST_NAME, &[w_id.into(), d_id.into(), name.as_str().into()]).await?;
    match middle(rows.len()) {
        Some(index) => get(&rows[index], 0),
        None => Err(Failure::Refused { code: None, reason: format!("district {d_id} of warehouse {w_id} has no customer named {name}") }),
    }
}

/// The index of position ⌈n/2⌉, counted from 1.
fn middle(count: usize) -> Option<usize> {
    count.div_ceil(2).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_rounded_up() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(middle), [None, Some(0), Some(0), Some(1), Some(1), Some(2)]);
    }
}

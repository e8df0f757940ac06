//! The HTTP interface of a Rhumb site as types: what is asked, what is answered, and the errors.
//!
//! A site serves these shapes and the command line reads them; the OpenAPI document is derived from them and from the routes of `node`.
//! So a field is named, typed and described once. Nothing here knows how a site comes by what it answers.
//!
//! ```text
//!   /status       [`status`]       the site, its regions and peers, transactions under way, quotas
//!   /placement    [`placement`]    which regions vote, which hold a copy, and what one would plan another placement from
//!   /quorums      [`quorums`]      the quorums of databases of protocol quad
//!   /quotas…      [`quotas`]       global quotas
//!   /lost         [`lost`]         sites declared lost to quotas
//!   /chaos        [`chaos`]        faults to inject
//!   /certificates [`certificates`] certificates renewed by the CA; joining a cluster that forms
//!   (all)         [`error`]        why a request was refused
//! ```

pub mod certificates;
pub mod chaos;
pub mod error;
pub mod lost;
pub mod placement;
pub mod quorums;
pub mod quotas;
pub mod responses;
pub mod status;

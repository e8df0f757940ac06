//! The PostgreSQL wire and SQL of Rhumb.

//! The fields that the file of a site and the file of a cluster have in common, said once.
//!
//! Both files have them at the top, beside their own. A struct of its own for them would do if serde could refuse unknown keys beside one
//! that it flattens; it cannot, so a macro writes them.

/// Declares what is read from a file: a struct with these fields, and with the common ones.
macro_rules! file {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$own_about:meta])* pub $own:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$own_about])* pub $own: $type,)*
            /// Names the cluster. Sites of clusters with different names refuse each other.
            #[serde(default = "default_cluster")]
            pub cluster: String,
            /// The file of the secret that the sites of the cluster share. Relative to the folder of the file.
            #[serde(default = "default_secret_file")]
            pub secret_file: PathBuf,
            /// True if `POST /chaos` may cut and slow links. For demonstrations and tests.
            #[serde(default)]
            pub chaos: bool,
            /// The emulated wide-area network; none if absent.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub wan: Option<Wan>,
            /// Which regions hold what; all are active if absent.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub placement: Option<Placement>,
            /// The clocks of sites.
            #[serde(default)]
            pub clock: Clock,
            /// The storage engine.
            #[serde(default)]
            pub storage: Storage,
            /// Quotas.
            #[serde(default)]
            pub quotas: Quotas,
            /// Databases of protocol `catenae`. The same at every site, but for `chain_sites`.
            #[serde(default)]
            pub catenae: Catenae,
            /// Databases of protocol `quad`. Should be the same at every site, but for `capacity`.
            #[serde(default)]
            pub quad: Quad,
            /// The HTTP ports.
            #[serde(default)]
            pub http: Http,
            /// Bounds that an operator may move.
            #[serde(default)]
            pub limits: Limits,
        }
    };
}

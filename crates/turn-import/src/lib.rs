//! Configurations of other TURN servers as configurations of truetick.
//!
//! [`coturn`] reads `turnserver.conf` and the arguments of `turnserver`; [`eturnal`] reads `eturnal.yml`. Both return an
//! [`Import`]: the TOML that truetick reads, the credentials, and one [`Row`] for each option that was set and for each
//! default that differs. No file is opened and nothing is written.
//!
//! ```
//! use turn_import::{Host, Outcome, coturn};
//!
//! let text = "use-auth-secret\nstatic-auth-secret=north\nrealm=example.org\ndtls\n";
//! let import = coturn::import(coturn::lines(text), &Host { has_ipv6: false, folder: None });
//! assert!(import.to_toml(None).contains("realm = \"example.org\""));
//! let dtls = import.rows.iter().find(|row| row.option == "dtls").unwrap();
//! assert_eq!(dtls.outcome, Outcome::Differs);
//! ```

#![forbid(unsafe_code)]

mod addresses;
mod ciphers;
pub mod coturn;
mod document;
pub mod eturnal;
mod import;

pub use import::{CredentialFiles, Host, Import, Outcome, Row};

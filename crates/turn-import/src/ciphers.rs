//! Lists of cipher suites of OpenSSL (`openssl ciphers`), as far as they mean suites that truetick offers.

/// The suites of TLS 1.2, each with the keywords that select it.
const OFFERED: [(&str, &[&str]); 6] = [
    ("ECDHE-ECDSA-AES256-GCM-SHA384", &["ECDSA", "aECDSA", "AES", "AESGCM", "AES256"]),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", &["ECDSA", "aECDSA", "AES", "AESGCM", "AES128"]),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", &["ECDSA", "aECDSA", "CHACHA20"]),
    ("ECDHE-RSA-AES256-GCM-SHA384", &["aRSA", "AES", "AESGCM", "AES256"]),
    ("ECDHE-RSA-AES128-GCM-SHA256", &["aRSA", "AES", "AESGCM", "AES128"]),
    ("ECDHE-RSA-CHACHA20-POLY1305", &["aRSA", "CHACHA20"]),
];
/// The suites of TLS 1.3, which are offered whatever a list has.
const OFFERED_OF_1_3: [&str; 3] = ["TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];
/// Keywords that select each of them.
const COMMON: [&str; 8] = ["ALL", "DEFAULT", "HIGH", "ECDHE", "EECDH", "kECDHE", "kEECDH", "TLSv1.2"];

/// A list of cipher suites.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ciphers {
    /// Suites that truetick offers.
    pub(crate) offered: Vec<&'static str>,
    /// What the list adds and truetick does not offer.
    pub(crate) absent: Vec<String>,
    /// A keyword adds suites: more than those that truetick offers.
    pub(crate) has_keyword: bool,
}

impl Ciphers {
    /// Reads a list: `NAME` and `A+B` add suites, `-` removes them, `!` excludes them for good, `+` moves them to the end.
    pub(crate) fn read(list: &str) -> Self {
        let (mut ciphers, mut excluded) = (Self::default(), Vec::new());
        for word in list.split([':', ',', ' ', ';']).filter(|word| !word.is_empty() && !word.starts_with('@')) {
            let (sign, item) = match word.split_at_checked(1) {
                Some((sign @ ("!" | "-" | "+"), item)) => (sign, item),
                Some(_) | None => ("", word),
            };
            let named: Vec<_> =
                OFFERED.iter().filter(|suite| is_selected(suite, item)).map(|(name, _)| *name).collect();
            match sign {
                "!" => excluded.extend(named),
                "-" => ciphers.offered.retain(|name| !named.contains(name)),
                "+" => {}
                _ if OFFERED_OF_1_3.contains(&item) => {}
                _ if named.is_empty() => ciphers.absent.push(item.to_owned()),
                _ => {
                    ciphers.has_keyword |= named != [item];
                    ciphers.offered.extend(named);
                }
            }
        }
        let is_offered = |name: &&str| ciphers.offered.contains(name) && !excluded.contains(name);
        ciphers.offered = OFFERED.iter().map(|(name, _)| *name).filter(is_offered).collect();
        ciphers
    }

    /// Whether the list has suites of TLS 1.3, which OpenSSL names as the RFCs do.
    pub(crate) fn names_tls_1_3(list: &str) -> bool {
        list.split([':', ',', ' ', ';']).any(|word| word.starts_with("TLS_"))
    }

    /// Whether these are all suites that truetick has.
    pub(crate) const fn are_all(&self) -> bool {
        self.offered.len() == OFFERED.len()
    }
}

fn is_selected((name, keywords): &(&str, &[&str]), item: &str) -> bool {
    *name == item || item.split('+').all(|word| COMMON.contains(&word) || keywords.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The suites of TLS 1.2 with AEAD and ECDHE that `openssl ciphers -v LIST` of OpenSSL 3.0 lists.
    #[test]
    fn lists_mean_what_openssl_prints() {
        let all: Vec<_> = OFFERED.iter().map(|(name, _)| *name).collect();
        let cases: [(&str, &[usize], &[&str]); 16] = [
            ("DEFAULT", &[0, 1, 2, 3, 4, 5], &[]),
            ("HIGH:!aNULL:!MD5", &[0, 1, 2, 3, 4, 5], &[]),
            ("ALL:!RC4:@STRENGTH", &[0, 1, 2, 3, 4, 5], &[]),
            ("ECDHE+AESGCM", &[0, 1, 3, 4], &[]),
            ("EECDH+AESGCM:EECDH+CHACHA20", &[0, 1, 2, 3, 4, 5], &[]),
            ("ECDHE+AES256:!ECDSA", &[3], &[]),
            ("HIGH:!AES128", &[0, 2, 3, 5], &[]),
            ("HIGH:-CHACHA20:+AES128", &[0, 1, 3, 4], &[]),
            ("!AES:HIGH", &[2, 5], &[]),
            ("aRSA+AES256", &[3], &[]),
            ("aECDSA", &[0, 1, 2], &[]),
            ("ECDHE-RSA-AES128-GCM-SHA256", &[4], &[]),
            ("ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384", &[4], &["DHE-RSA-AES256-GCM-SHA384"]),
            ("TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256", &[4], &[]),
            ("TLS_AES_128_CCM_SHA256:TLS_CHACHA20_POLY1305_SHA256", &[], &["TLS_AES_128_CCM_SHA256"]),
            ("AES256-SHA, RC4-SHA", &[], &["AES256-SHA", "RC4-SHA"]),
        ];
        for (list, offered, absent) in cases {
            let ciphers = Ciphers::read(list);
            assert_eq!(ciphers.offered, offered.iter().map(|index| all[*index]).collect::<Vec<_>>(), "{list}");
            assert_eq!(ciphers.absent, absent, "{list}");
        }
    }
}

//! Numbers that are added up over the runs of a world.

macro_rules! tally {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Totals of one run or many.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Tally {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Tally {
            /// How many numbers it has.
            pub const WORDS: usize = [$(stringify!($name)),+].len();

            /// All of them.
            #[must_use]
            pub const fn to_words(&self) -> [u64; Self::WORDS] {
                [$(self.$name),+]
            }

            /// From what [`to_words`](Self::to_words) gave.
            #[must_use]
            pub const fn from_words(words: [u64; Self::WORDS]) -> Self {
                let [$($name),+] = words;
                Self { $($name),+ }
            }

            /// Adds what another run came to.
            pub const fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

pub(crate) use tally;

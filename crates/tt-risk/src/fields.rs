//! Every field of a gate, in a fixed order: what a snapshot writes and reads.

use alloc::{boxed::Box, vec::Vec};
use tt_model::{InstrumentId, IntentFlags, IntentKind, Notional, OrderSide, Price, Qty, TimeInForce};

/// A pass over fields. A writer takes each word, a reader replaces it.
pub(crate) struct Fields<'a> {
    /// Sees a word, and its column in a row of a table, from 1; 0 outside tables.
    see: &'a mut dyn FnMut(usize, &mut u64),
    column: usize,
    /// Whether every word was a value that its field can have.
    pub(crate) is_sound: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(see: &'a mut dyn FnMut(usize, &mut u64)) -> Self {
        Self { see, column: 0, is_sound: true }
    }

    fn word(&mut self, mut word: u64) -> u64 {
        (self.see)(self.column, &mut word);
        self.column += usize::from(self.column > 0);
        word
    }

    /// Visits a field of which only some words are values.
    pub(crate) fn narrow<T: Copy>(&mut self, field: &mut T, word: u64, value: impl FnOnce(u64) -> Option<T>) {
        match value(self.word(word)) {
            Some(value) => *field = value,
            None => self.is_sound = false,
        }
    }

    /// Visits a number that this gate has already: a reader's must be the same.
    fn fixed(&mut self, number: usize) {
        self.is_sound &= self.word(number as u64) == number as u64;
    }

    /// Visits the rows of a table.
    pub(crate) fn rows<T>(&mut self, rows: impl Iterator<Item = T>, mut visit: impl FnMut(&mut Self, T)) {
        for row in rows {
            self.column = 1;
            visit(self, row);
        }
        self.column = 0;
    }
}

/// A value with fields.
pub(crate) trait Visit {
    fn visit(&mut self, fields: &mut Fields<'_>);
}

/// Visits every field of a struct. A field that is not listed does not compile.
macro_rules! visit {
    ($type:ty: $($field:tt),+ $(,)?) => {
        impl $crate::fields::Visit for $type {
            fn visit(&mut self, fields: &mut $crate::fields::Fields<'_>) {
                let Self { $($field),+ } = self;
                $($crate::fields::Visit::visit($field, fields);)+
            }
        }
    };
}
pub(crate) use visit;

/// Visits an enum without values. A variant that is not listed does not compile.
macro_rules! visit_variants {
    ($type:ty: $($variant:ident),+ $(,)?) => {
        impl $crate::fields::Visit for $type {
            fn visit(&mut self, fields: &mut $crate::fields::Fields<'_>) {
                match self {
                    $(Self::$variant)|+ => {}
                }
                let all = [$(Self::$variant),+];
                let number = all.iter().position(|variant| variant == self).unwrap_or(all.len());
                fields.narrow(self, number as u64, |word| all.get(usize::try_from(word).ok()?).copied());
            }
        }
    };
}
pub(crate) use visit_variants;

macro_rules! visit_numbers {
    ($($type:ty),+) => {
        $(impl Visit for $type {
            fn visit(&mut self, fields: &mut Fields<'_>) {
                fields.narrow(self, u64::from(*self), |word| word.try_into().ok());
            }
        })+
    };
}

visit_numbers!(u8, u16, u32, u64);

impl Visit for bool {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.narrow(self, u64::from(*self), |word| (word < 2).then_some(word == 1));
    }
}

impl Visit for usize {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.narrow(self, *self as u64, |word| word.try_into().ok());
    }
}

impl Visit for i64 {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        *self = fields.word(self.cast_unsigned()).cast_signed();
    }
}

impl Visit for u128 {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        let low = fields.word(*self as u64);
        let high = fields.word((*self >> 64) as u64);
        *self = u128::from(high) << 64 | u128::from(low);
    }
}

impl Visit for i128 {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        let mut bits = self.cast_unsigned();
        bits.visit(fields);
        *self = bits.cast_signed();
    }
}

macro_rules! visit_wrappers {
    ($($type:ident),+) => {
        $(impl Visit for $type {
            fn visit(&mut self, fields: &mut Fields<'_>) {
                let Self(value) = self;
                value.visit(fields);
            }
        })+
    };
}

visit_wrappers!(InstrumentId, IntentFlags, IntentKind, Notional, Price, Qty, TimeInForce);
visit_variants!(OrderSide: Buy, Sell);

impl<A: Visit, B: Visit> Visit for (A, B) {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        let (a, b) = self;
        a.visit(fields);
        b.visit(fields);
    }
}

/// Visits an option. The words of a value are there without one too.
impl<T: Visit + Copy + Default> Visit for Option<T> {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        let (mut is_some, mut value) = (self.is_some(), self.unwrap_or_default());
        is_some.visit(fields);
        value.visit(fields);
        *self = is_some.then_some(value);
    }
}

impl<T: Visit, const N: usize> Visit for [T; N] {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        self.iter_mut().for_each(|value| value.visit(fields));
    }
}

impl<T: Visit> Visit for Box<[T]> {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.fixed(self.len());
        fields.rows(self.iter_mut(), |fields, row| row.visit(fields));
    }
}

/// Visits a list with reserved room.
impl<T: Visit + Default> Visit for Vec<T> {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        let mut len = self.len();
        len.visit(fields);
        if len > self.capacity() {
            fields.is_sound = false;
            return;
        }
        self.resize_with(len, T::default);
        self.iter_mut().for_each(|value| value.visit(fields));
    }
}

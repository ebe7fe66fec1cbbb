//! Structs and constants of the object as its BTF describes them, compared with those of this crate.
//!
//! The format is `Documentation/bpf/btf.rst` of Linux. All numbers are little-endian, as the object is.

use object::{Object as _, ObjectSection as _};

use crate::PathError;
use crate::layout::{LAYOUTS, Layout};
use crate::reason::IN_PROGRAM;

const MAGIC: u16 = 0xEB9F;
const STRUCT: u32 = 4;
const ENUM: u32 = 6;

/// Compares the object with [`LAYOUTS`] and the reasons.
///
/// # Errors
/// [`PathError::Layout`] names the first difference.
pub(crate) fn check(elf: &[u8]) -> Result<(), PathError> {
    let file = parse(elf)?;
    let types = types(&file)?;
    check_types(&types, &LAYOUTS)?;
    let reasons = types.find(ENUM, "reason").ok_or_else(|| differs("reason", "is missing"))?;
    // The first constant, 0, is that of packets that are not counted.
    if !reasons.members.iter().skip(1).copied().eq(IN_PROGRAM) {
        return Err(differs("reason", "has other constants"));
    }
    Ok(())
}

/// Compares the structs of an object with `layouts`.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_structs(elf: &[u8], layouts: &[Layout]) -> Result<(), PathError> {
    check_types(&types(&parse(elf)?)?, layouts)
}

fn parse(elf: &[u8]) -> Result<object::File<'_>, PathError> {
    object::File::parse(elf).map_err(|error| PathError::Layout(error.to_string()))
}

fn types<'a>(file: &object::File<'a>) -> Result<Types<'a>, PathError> {
    let section = file.section_by_name(".BTF").and_then(|section| section.data().ok());
    section.and_then(Types::parse).ok_or_else(|| PathError::Layout("no BTF".to_owned()))
}

fn check_types(types: &Types<'_>, layouts: &[Layout]) -> Result<(), PathError> {
    for layout in layouts {
        let declared = types.find(STRUCT, layout.name).ok_or_else(|| differs(layout.name, "is missing"))?;
        if declared.size != layout.size {
            return Err(differs(layout.name, &format!("has {} bytes, not {}", declared.size, layout.size)));
        }
        let fields = declared.members.iter().map(|(name, bits)| (*name, (*bits & 0xff_ffff) as usize / 8));
        if !fields.eq(layout.fields.iter().copied()) {
            return Err(differs(layout.name, "has other fields"));
        }
    }
    Ok(())
}

fn differs(name: &str, how: &str) -> PathError {
    PathError::Layout(format!("{name} {how}"))
}

/// A struct or an enum: its members with their offset in bits, or their value.
#[derive(Debug, PartialEq)]
struct Type<'a> {
    kind: u32,
    name: &'a str,
    size: usize,
    members: Vec<(&'a str, u32)>,
}

/// Every struct and enum of a BTF section.
#[derive(Debug)]
struct Types<'a>(Vec<Type<'a>>);

impl<'a> Types<'a> {
    fn parse(btf: &'a [u8]) -> Option<Self> {
        let header_len = word(btf, 4)?;
        let (types_at, types_len) = (word(btf, 8)?, word(btf, 12)?);
        let (names_at, names_len) = (word(btf, 16)?, word(btf, 20)?);
        if u16::from_le_bytes([*btf.first()?, *btf.get(1)?]) != MAGIC {
            return None;
        }
        let part = |at: u32, len: u32| {
            let start = (header_len as usize).checked_add(at as usize)?;
            btf.get(start..start.checked_add(len as usize)?)
        };
        let (types, names) = (part(types_at, types_len)?, part(names_at, names_len)?);
        let name = |at: u32| -> Option<&'a str> {
            let text = names.get(at as usize..)?;
            std::str::from_utf8(text.split(|byte| *byte == 0).next()?).ok()
        };
        let (mut found, mut at) = (Vec::new(), 0);
        while at < types.len() {
            let (info, size) = (word(types, at + 4)?, word(types, at + 8)? as usize);
            let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            let entry_len = entry_len(kind)?;
            if matches!(kind, STRUCT | ENUM) {
                let entry = |index: usize| {
                    let entry = at + 12 + index * entry_len;
                    Some((name(word(types, entry)?)?, word(types, entry + entry_len - 4)?))
                };
                let members = (0..count).map(entry).collect::<Option<_>>()?;
                found.push(Type { kind, name: name(word(types, at)?)?, size, members });
            }
            at += 12 + if has_entries(kind) { count * entry_len } else { entry_len };
        }
        Some(Self(found))
    }

    fn find(&self, kind: u32, name: &str) -> Option<&Type<'a>> {
        self.0.iter().find(|found| found.kind == kind && found.name == name)
    }
}

/// Bytes after the common header of a type: for each of its entries, or once.
const fn entry_len(kind: u32) -> Option<usize> {
    Some(match kind {
        1 | 14 | 17 => 4,
        2 | 7..=12 | 16 | 18 => 0,
        6 | 13 => 8,
        3..=5 | 15 | 19 => 12,
        _ => return None,
    })
}

/// Structs, unions, enums, prototypes and sections of variables.
const fn has_entries(kind: u32) -> bool {
    matches!(kind, 4..=6 | 13 | 15 | 19)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::object;

    #[test]
    fn the_committed_object_has_the_layout_of_this_crate() {
        check(&object()).unwrap();
    }

    /// Each byte of the types' part that names, sizes or places a field is compared.
    #[test]
    fn a_moved_field_another_size_and_another_reason_are_found() {
        let object = object();
        let file = object::File::parse(&*object).unwrap();
        let (start, len) = file.section_by_name(".BTF").unwrap().file_range().unwrap();
        let btf = &object[start as usize..(start + len) as usize];
        let types = Types::parse(btf).unwrap();
        let places = |wanted: &[u8]| -> Vec<usize> {
            (0..btf.len() - wanted.len()).filter(|at| btf[*at..].starts_with(wanted)).collect()
        };
        for layout in &LAYOUTS {
            let found = types.find(STRUCT, layout.name).unwrap();
            // info and size of the struct: kind 4, `count` members.
            let header =
                [((STRUCT << 24) | found.members.len() as u32).to_le_bytes(), (layout.size as u32).to_le_bytes()];
            // Another struct of the object may have the same size and number of members.
            let is_found = |offset: usize| {
                let mut changed = places(&header.concat()).into_iter().map(|at| {
                    let mut object = object.clone();
                    object[start as usize + at + offset] ^= 8;
                    check(&object)
                });
                changed.any(|checked| checked.is_err_and(|error| error.to_string().contains(layout.name)))
            };
            assert!(is_found(4), "another size of {}", layout.name);
            // The offset of the last member, in bits.
            assert!(is_found(8 + found.members.len() * 12 - 4), "another place of the last field of {}", layout.name);
        }
        let reasons = types.find(ENUM, "reason").unwrap();
        let header = ((ENUM << 24) | reasons.members.len() as u32).to_le_bytes();
        let at = places(&header)[0];
        let mut changed = object.clone();
        changed[start as usize + at + 8 + 8 * 5 - 4] ^= 64;
        assert!(check(&changed).unwrap_err().to_string().contains("reason"));
        assert!(check(&object[..100]).is_err());
    }
}

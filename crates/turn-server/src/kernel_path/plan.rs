//! Where the program is attached, and how.

use tt_path::Mode;
use tt_path::drivers::{Driver, NativeUse};
use turn_config::KernelMode;

/// Decides by the driver of an interface.
///
/// # Errors
/// Why the sockets relay its packets.
pub(super) fn mode(data_path: KernelMode, Driver { native, reason, .. }: Driver) -> Result<Mode, String> {
    match (data_path, native) {
        (KernelMode::Generic, _) => Ok(Mode::Generic),
        (_, NativeUse::Never) => Err(reason.to_owned()),
        (KernelMode::Native, NativeUse::Auto | NativeUse::Asked) | (_, NativeUse::Auto) => Ok(Mode::Native),
        (KernelMode::Auto | KernelMode::Off, NativeUse::Asked) => {
            Err(format!("{reason}; --data-path native attaches nevertheless"))
        }
    }
}

//! Devices that models run on, opened by name.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};
pub use candle_core::Device;

use poolcast_base::error::hinted;

/// The name of a device, as the user requests it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceName {
    /// The CPU.
    Cpu,
    /// The CUDA device with this number.
    Cuda(usize),
    /// The first CUDA device if there is one, else the CPU.
    Auto,
}

impl FromStr for DeviceName {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<DeviceName> {
        Ok(match text.split_once(':').unwrap_or((text, "")) {
            ("cpu", "") if text == "cpu" => DeviceName::Cpu,
            ("auto", "") if text == "auto" => DeviceName::Auto,
            ("cuda", "") if text == "cuda" => DeviceName::Cuda(0),
            ("cuda", number) => DeviceName::Cuda(
                number
                    .parse()
                    .context("expected the number of a CUDA device, as in `cuda:0`")?,
            ),
            _ => bail!("expected `cpu`, `cuda`, `cuda:N` or `auto`"),
        })
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceName::Cpu => f.write_str("cpu"),
            DeviceName::Cuda(number) => write!(f, "cuda:{number}"),
            DeviceName::Auto => f.write_str("auto"),
        }
    }
}

impl DeviceName {
    /// Opens the device. If `Auto` finds no usable CUDA device, it logs a warning and returns the
    /// CPU.
    ///
    /// # Errors
    /// Fails for a missing CUDA device, and for every CUDA device in a program that was built
    /// without CUDA.
    pub fn open(self) -> Result<Device> {
        match self {
            DeviceName::Cpu => Ok(Device::Cpu),
            DeviceName::Auto if !cfg!(feature = "cuda") => Ok(Device::Cpu),
            DeviceName::Auto => Ok(open_cuda(0).unwrap_or_else(|error| {
                tracing::warn!("{error:#}; using the CPU");
                Device::Cpu
            })),
            DeviceName::Cuda(number) => open_cuda(number),
        }
    }
}

fn open_cuda(number: usize) -> Result<Device> {
    if !cfg!(feature = "cuda") {
        let hint =
            "use `--device cpu`, or build poolcast with `cargo build --release --features cuda`";
        bail!(hinted("this program was built without CUDA", hint));
    }
    let hint = "see what `nvidia-smi -L` lists, or use `--device cpu`";
    Device::new_cuda(number)
        .with_context(|| hinted(format!("cannot use the CUDA device {number}"), hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_round_trip() {
        for (text, name) in [
            ("cpu", DeviceName::Cpu),
            ("cuda", DeviceName::Cuda(0)),
            ("cuda:3", DeviceName::Cuda(3)),
            ("auto", DeviceName::Auto),
        ] {
            assert_eq!(text.parse::<DeviceName>().expect("a device"), name);
            assert_eq!(
                name.to_string().parse::<DeviceName>().expect("a device"),
                name
            );
        }
        for text in [
            "", "cpu:0", "cuda:", "cuda:-1", "cuda:x", "auto:", "gpu", "CUDA",
        ] {
            assert!(text.parse::<DeviceName>().is_err(), "{text}");
        }
    }
}

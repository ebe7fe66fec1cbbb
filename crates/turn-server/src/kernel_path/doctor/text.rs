//! The report as lines for a person.

use std::fmt;

use super::{InterfaceReport, NextHopReport, PathReport, ProgramReport};

impl fmt::Display for PathReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let age = if self.is_new_enough { "new enough" } else { "too old: Linux 5.18 is needed" };
        let jit = match self.has_jit {
            Some(true) => "programs are compiled",
            Some(false) => "programs are interpreted: sysctl -w net.core.bpf_jit_enable=1",
            None => "it does not say whether programs are compiled",
        };
        let btf = if self.has_btf { "BTF" } else { "no BTF" };
        writeln!(out, "kernel      {}, {age}; {jit}; {btf} (not needed)", self.kernel)?;
        match &self.missing[..] {
            [] => writeln!(out, "privileges  CAP_BPF, CAP_NET_ADMIN")?,
            missing => writeln!(out, "privileges  missing: {}", missing.join(", "))?,
        }
        writeln!(out, "program     {}", self.rejected.as_deref().unwrap_or("the kernel accepts it"))?;
        self.interfaces.iter().try_for_each(|interface| write!(out, "\n{interface}"))
    }
}

impl fmt::Display for InterfaceReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_up { "up" } else { "down" };
        let driver = self.driver.as_deref().unwrap_or("no driver that the kernel names");
        writeln!(out, "{}: {driver}, MTU {}, {state}", self.name, self.mtu)?;
        writeln!(out, "  native      {}: {}", self.native_use, self.reason)?;
        let (tx, gro, lro) = (state_of(self.tx_checksum), state_of(self.gro), state_of(self.lro));
        writeln!(out, "  offloads    tx checksum {tx}, gro {gro}, lro {lro}")?;
        if !self.vlans.is_empty() {
            writeln!(out, "  VLANs       {}", self.vlans.join(", "))?;
        }
        if let Some(program) = &self.program {
            writeln!(out, "  program     {program}")?;
        }
        for plan in &self.plans {
            write!(out, "  {:11} {}", plan.data_path, plan.result)?;
            plan.reason.iter().try_for_each(|reason| write!(out, ": {reason}"))?;
            writeln!(out)?;
        }
        if self.next_hops.is_empty() {
            writeln!(out, "  next hop    no address to ask for")?;
        }
        for hop in &self.next_hops {
            writeln!(out, "  next hop    {hop}")?;
        }
        self.advice.iter().try_for_each(|advice| writeln!(out, "  > {advice}"))
    }
}

impl fmt::Display for ProgramReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("name unknown");
        write!(out, "{} ({name}), {}, held by ", self.id, self.mode)?;
        if self.held_by.is_empty() {
            out.write_str("no visible process")
        } else {
            out.write_str(&self.held_by.join(", "))
        }
    }
}

impl fmt::Display for NextHopReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} to {}: ", self.from, self.to)?;
        match (&self.via, self.mtu, self.refusal, self.reason) {
            (Some(via), Some(mtu), ..) => write!(out, "{via}, MTU {mtu}"),
            (.., refusal, reason) => {
                write!(out, "sockets, {}: {}", refusal.unwrap_or_default(), reason.unwrap_or_default())
            }
        }
    }
}

const fn state_of(offload: Option<bool>) -> &'static str {
    match offload {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    }
}

//! Place of a run: the slot and the machine that event 001 or the reason of a hold names.

use memchr::{memchr, memmem};

use super::event_facts::{ExecutionHost, name_hash};
use super::record::{LogRecord, RecordContent, body_lines, headline};

/// Parses the place of a run in event 001.
pub(super) fn parse_execution_host(record: &LogRecord<'_>) -> ExecutionHost {
    let text = match record.content {
        RecordContent::Text(text) => text,
        RecordContent::Ad(format) => {
            let attributes = record.ad_attributes(format);
            if let Some(slot) = attributes.text("SlotName") {
                return parse_slot_name(slot.as_bytes());
            }
            let address = attributes.text("ExecuteHost").unwrap_or_default();
            return parse_address(address.as_bytes());
        }
    };

    // HTCondor 10.5 and later write the name of the slot, in the first line of the body. It is
    // preferred to the address.
    let first_line = headline(body_lines(text));
    if let Some(slot) = first_line.strip_prefix(b"SlotName: ") {
        return parse_slot_name(slot.trim_ascii());
    }
    let line = headline(text);
    let address = memmem::find(line, b"host: ").map_or(&[][..], |at| &line[at + 6..]);
    parse_address(address.trim_ascii())
}

/// Parses a slot name such as `slot1_3@host`; a name without `@` is a host. In
/// `slot1@glidein_71_2384@host`, the pilot's own number is ignored, because it changes every few
/// hours.
pub(super) fn parse_slot_name(name: &[u8]) -> ExecutionHost {
    if name.is_empty() {
        return ExecutionHost::default();
    }
    let Some(at) = memchr(b'@', name) else {
        return ExecutionHost {
            host: name_hash(name),
            slot: 0,
        };
    };

    let machine = &name[at + 1..];
    let after_pilot = machine
        .strip_prefix(b"glidein_")
        .and_then(|rest| Some(&rest[memchr(b'@', rest)? + 1..]));
    let host = name_hash(after_pilot.unwrap_or(machine));

    // The slot within its machine: an equal number on another machine is another slot.
    let number = name_hash(&name[..at]);
    let slot = name_hash(&(u64::from(host) << 32 | u64::from(number)).to_le_bytes());
    ExecutionHost { host, slot }
}

/// Parses the machine in an address such as `<10.0.0.1:9618?alias=host&...>`: its alias, else its
/// IP address. Old logs may have the name of the machine instead of an address.
fn parse_address(address: &[u8]) -> ExecutionHost {
    let inner = address.strip_prefix(b"<").unwrap_or(address);
    let inner = &inner[..memchr(b'>', inner).unwrap_or(inner.len())];

    let host = match memmem::find(inner, b"alias=") {
        Some(at) => {
            let alias = &inner[at + 6..];
            &alias[..memchr(b'&', alias).unwrap_or(alias.len())]
        }
        None if inner.starts_with(b"[") => {
            &inner[..memchr(b']', inner).map_or(inner.len(), |end| end + 1)]
        }
        None => &inner[..memchr::memchr2(b':', b'?', inner).unwrap_or(inner.len())],
    };
    let host = if host.is_empty() { 0 } else { name_hash(host) };
    ExecutionHost { host, slot: 0 }
}

#[cfg(test)]
mod tests {
    use super::super::record_scan::RecordScan;
    use super::*;

    fn place(text: &str) -> ExecutionHost {
        parse_execution_host(&RecordScan::new(text.as_bytes(), true).collect_records()[0])
    }

    fn text_place(host: &str, slot: &str) -> ExecutionHost {
        place(&format!(
            "001 (1.0.0) 01/02 03:04:05 Job executing on host: {host}\n{slot}...\n"
        ))
    }

    #[test]
    fn addresses_and_slot_names_give_the_same_host() {
        let new = text_place(
            "<10.26.0.15:9618?addrs=10.26.0.15-9618&alias=e2035.krill.example&noUDP&sock=startd_7>",
            "\tSlotName: slot1_40@e2035.krill.example\n\tCpus = 1\n",
        );
        let without_slot = text_place("<10.26.0.15:9618?alias=e2035.krill.example&noUDP>", "");
        let name = text_place("e2035.krill.example", "");
        assert_eq!([without_slot.host, name.host], [new.host; 2]);
        assert_eq!(without_slot.slot, 0);
        assert!(new.host != 0 && new.slot != 0);
        assert_ne!(text_place("<10.26.0.15:9618>", "").host, new.host);
        assert_eq!(
            text_place("<10.26.0.15:9618>", ""),
            text_place("<10.26.0.15:31234?noUDP>\r", "")
        );
        assert_ne!(
            text_place("<[fd00::2]:9618>", ""),
            text_place("<[fd00::3]:9618>", "")
        );
        assert_eq!(text_place("", ""), ExecutionHost::default());
    }

    #[test]
    fn classads_give_the_same_place() {
        let text = text_place(
            "<10.0.0.1:9618?alias=ap7>",
            "\tSlotName: slot2@gp-9.tigres@ap7\n",
        );
        let ids = "\"Cluster\": 1, \"Proc\": 0, \"EventTypeNumber\": 1, \"EventTime\": \"2024-01-02T03:04:05\"";
        let json = place(&format!(
            "{{ {ids}, \"ExecuteHost\": \"<10.0.0.1:9618?alias=ap7>\", \"SlotName\": \"slot2@gp-9.tigres@ap7\" }}\n"
        ));
        let xml = place(
            "<c>\n<a n=\"EventTypeNumber\"><i>1</i></a><a n=\"EventTime\"><s>2024-01-02T03:04:05</s></a>\n\
             <a n=\"SlotName\"><s>slot2@gp-9.tigres@ap7</s></a>\n</c>\n",
        );
        assert_eq!([json, xml], [text; 2]);
        let address = place(&format!(
            "{{ {ids}, \"ExecuteHost\": \"<10.0.0.1:9618?alias=ap7>\" }}\n"
        ));
        assert_eq!(address.host, text_place("<10.0.0.2:1?alias=ap7>", "").host);
    }

    #[test]
    fn slots_differ_and_pilot_numbers_are_ignored() {
        let slot = |name: &str| parse_slot_name(name.as_bytes());
        assert_eq!(slot("slot1_1@a").host, slot("slot1_2@a").host);
        assert_ne!(slot("slot1_1@a").slot, slot("slot1_2@a").slot);
        assert_ne!(slot("slot1_1@a").slot, slot("slot1_1@b").slot);
        assert_eq!(
            slot("slot1_1@glidein_71_2384@node7.site.example"),
            slot("slot1_1@glidein_9_11@node7.site.example")
        );
        assert_eq!(
            slot("slot1_1@glidein_71_2384@node7.site.example").host,
            slot("slot9@node7.site.example").host
        );
        assert_ne!(
            slot("slot1@gp-9.tigres@ap7").host,
            slot("slot1@gp-3.tigres@ap7").host
        );
        assert_eq!(slot(""), ExecutionHost::default());
    }
}

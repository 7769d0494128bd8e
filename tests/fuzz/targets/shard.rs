//! Opens any bytes as a shard. Its tensors must be readable, or there must be an error, but never a
//! panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use poolcast_base::shard::{ArtefactFormat, Shard, ShardElement};

/// Format of the seeds.
const FORMAT: ArtefactFormat = ArtefactFormat {
    name: "fuzz",
    version: 1,
    rebuild: "ci/proof/fuzz",
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(shard) = Shard::from_bytes(bytes, FORMAT) else {
        return;
    };
    assert_eq!(shard.bytes(), bytes);
    drop(shard.notes::<Vec<String>>());
    for name in shard.names() {
        let elements = shard
            .shape(name)
            .expect("every tensor has a shape")
            .iter()
            .product();
        let readable = [
            reads::<u8>(&shard, name, elements),
            reads::<u16>(&shard, name, elements),
            reads::<u32>(&shard, name, elements),
            reads::<i32>(&shard, name, elements),
            reads::<i64>(&shard, name, elements),
            reads::<u64>(&shard, name, elements),
            reads::<f32>(&shard, name, elements),
        ];
        assert!(
            readable.into_iter().filter(|read| *read).count() <= 1,
            "`{name}` is of two types"
        );
    }
});

/// Returns true if tensor `name` can be read as elements of this type. Asserts that their number
/// then matches the shape.
fn reads<T: ShardElement>(shard: &Shard, name: &str, elements: usize) -> bool {
    let column = shard.column::<T>(name);
    column.is_ok_and(|column| {
        assert_eq!(column.len(), elements, "`{name}`");
        true
    })
}

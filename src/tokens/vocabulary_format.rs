//! Format of the tables of an encoding. The build script writes each table to a file, and the program borrows it as
//! numbers in the byte order of the target. Both need the parts of this module.
//!
//! | file | numbers | contents |
//! |---|---|---|
//! | `bytes` | `i32` | rank of each byte |
//! | `pairs` | `u64` | facts about each pair of bytes, by [`pair_index`]: see [`STARTS_INSIDE_SHIFT`] |
//! | `rows` | `u16` | by [`pair_index`], the row of the longer words that start with a pair; 0 if there are none |
//! | `starts` | 4 `u64`, 4 `u32` | rows of word starts: a bit per third byte, and the starts before each group of bits |
//! | `start_ranks` | `i32` | by [`start_position`], the ranks of the words of three bytes |
//! | `short` | `u64` | slots of the words of 4 to [`MAX_SHORT_WORD_BYTES`] bytes, keyed by their bytes |
//! | `joined` | `u64` | slots of the longer words, keyed by the ranks of the two words that they are merged from |
//! | `whole` | `u32` | slots of the longer words, keyed by their bytes |
//! | `filter` | `u64` | filter with a bit per hash prefix of the keys in the three tables of slots |
//! | `begins` | `u32` | by rank, the start of a word in `text`, followed by the end; short words take no bytes |
//! | `text` | `u8` | the longer words, concatenated |
//!
//! A slot is a tag and, in its lowest [`RANK_BITS`] bits, a rank; 0 is a free slot. The high bits of a key's hash select
//! its slot, and the next free slot is taken instead of an occupied one (linear probing).

/// Number of bits of a rank.
pub const RANK_BITS: u32 = 18;
/// Stands for no word; larger than every rank, and all bits of a rank are set. Leaves 8 bits free for a position beside
/// the rank.
pub const NO_RANK: i32 = (1 << RANK_BITS) - 1;
/// Longest word in bytes whose bytes fit into its own hash tag.
pub const MAX_SHORT_WORD_BYTES: usize = 5;
/// Number of bits in the tag of a longer word: with a rank it fills a slot of 32 bits.
const LONG_TAG_BITS: u32 = u32::BITS - RANK_BITS;

/// The facts about two adjacent bytes are one number. Its lowest [`RANK_BITS`] bits are the rank of the two bytes as a
/// word, or [`NO_RANK`].
///
/// For the last byte of one character and the first byte of the next, two more ranks follow: the lowest rank of a word
/// that contains both and starts inside the first character, and of one that ends inside the second.
pub const STARTS_INSIDE_SHIFT: u32 = RANK_BITS;
pub const ENDS_INSIDE_SHIFT: u32 = 2 * RANK_BITS;
/// Bit of two bytes that are adjacent in some word.
pub const IS_INSIDE: u64 = 1 << (3 * RANK_BITS);

/// Returns the index of two adjacent bytes in a table of pairs.
#[inline]
pub fn pair_index(first: u8, second: u8) -> usize {
    usize::from(u16::from_be_bytes([first, second]))
}

/// Returns the position of a word start among all starts, by its third byte and the `bits` and `before` of its row;
/// `None` if no word starts with these bytes.
#[inline]
pub fn start_position(bits: &[u64; 4], before: &[u32; 4], third: u8) -> Option<usize> {
    let group = usize::from(third / 64);
    let (bits, bit) = (bits[group], 1 << (third % 64));
    (bits & bit != 0).then(|| (before[group] + (bits & (bit - 1)).count_ones()) as usize)
}

/// Returns the byte length of the UTF-8 character that begins with `byte`; 1 if no character begins with it.
#[inline]
pub fn utf8_length(byte: u8) -> usize {
    match byte {
        ..=0xbf => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    }
}

/// Returns by how many bits a hash is shifted to become an index below `places`, a power of two above 1.
pub fn index_shift(places: usize) -> u32 {
    u64::BITS - places.trailing_zeros()
}

/// Search key of a word.
#[derive(Clone, Copy)]
pub struct WordKey {
    /// Tag that fits beside a rank into a slot.
    pub tag: u64,
    pub hash: u64,
}

impl WordKey {
    /// Returns the key of a merge of two words; its tag is unique.
    #[inline]
    pub fn from_ranks(left: i32, right: i32) -> Self {
        Self::from_tag((left as u64) << RANK_BITS | right as u64)
    }

    /// Returns the key of a word. For a short word the tag is unique: its bytes followed by a 1 bit. For a longer word
    /// the tag is a part of the hash that selects no slot.
    #[inline]
    pub fn from_bytes(text: &[u8], start: usize, end: usize) -> Self {
        let length = end - start;
        if length > MAX_SHORT_WORD_BYTES {
            let hash = hash_word(&text[start..end]);
            return Self { tag: (hash >> u32::BITS) & ((1 << LONG_TAG_BITS) - 1), hash };
        }
        let eight = match text[start..].first_chunk() {
            Some(eight) => *eight,
            None => {
                let mut eight = [0; 8];
                eight[..length].copy_from_slice(&text[start..end]);
                eight
            }
        };
        let end = 1 << (8 * length);
        Self::from_tag(u64::from_le_bytes(eight) & (end - 1) | end)
    }

    /// Returns the word index and the bit mask of this key in a filter whose bits have indexes of the given shift.
    #[inline]
    pub fn filter_bit(self, shift: u32) -> (usize, u64) {
        let bit = self.hash >> shift;
        (bit as usize / 64, 1 << (bit % 64))
    }

    #[inline]
    fn from_tag(tag: u64) -> Self {
        Self { tag, hash: tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }
}

/// Hashes at least five bytes; the high bits are the best distributed.
#[inline]
fn hash_word(word: &[u8]) -> u64 {
    let mix = |hash: u64, part: u64| (hash.rotate_left(29) ^ part).wrapping_mul(0x517c_c1b7_2722_0a95);
    let length = word.len() as u64;
    let Some(last) = word.last_chunk() else {
        let four = |four: Option<&[u8; 4]>| four.map_or(0, |four| u64::from(u32::from_le_bytes(*four)));
        return mix(length, four(word.first_chunk()) | four(word.last_chunk()) << 32);
    };
    let (mut hash, mut rest) = (length, word);
    while let Some((part, behind)) = rest.split_first_chunk() {
        hash = mix(hash, u64::from_le_bytes(*part));
        rest = behind;
    }
    if rest.is_empty() { hash } else { mix(hash, u64::from_le_bytes(*last)) }
}

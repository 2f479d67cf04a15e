//! Language families for the search for copies, with their keywords.

use std::sync::LazyLock;

use crate::syntax::language::Language;

/// A group of languages whose files are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LanguageFamily {
    Rust,
    Python,
    Script,
    Go,
    Java,
    C,
    CSharp,
    Ruby,
    Php,
    Bash,
}

impl LanguageFamily {
    pub fn from_language(language: Language) -> Self {
        match language {
            Language::Rust => Self::Rust,
            Language::Python => Self::Python,
            Language::JavaScript | Language::TypeScript | Language::Tsx => Self::Script,
            Language::Go => Self::Go,
            Language::Java => Self::Java,
            Language::C | Language::Cpp => Self::C,
            Language::CSharp => Self::CSharp,
            Language::Ruby => Self::Ruby,
            Language::Php => Self::Php,
            Language::Bash => Self::Bash,
        }
    }

    pub(super) fn has_slash_comments(self) -> bool {
        !matches!(self, Self::Python | Self::Ruby | Self::Bash)
    }

    pub(super) fn has_hash_comments(self) -> bool {
        matches!(self, Self::Python | Self::Ruby | Self::Bash | Self::Php)
    }

    fn keywords(self) -> &'static str {
        match self {
            Self::Rust => {
                "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match \
                 mod move mut pub ref return self Self static struct super trait true type unsafe use where while"
            }
            Self::Python => {
                "False None True and as assert async await break class continue def del elif else except finally for \
                 from global if import in is lambda nonlocal not or pass raise return self try while with yield"
            }
            Self::Script => {
                "async await break case catch class const continue debugger default delete do else enum export extends \
                 false finally for function if implements import in instanceof interface let new null of return static \
                 super switch this throw true try type typeof undefined var void while yield"
            }
            Self::Go => {
                "break case chan const continue default defer else fallthrough false for func go goto if import \
                 interface map nil package range return select struct switch true type var"
            }
            Self::Java => {
                "abstract assert boolean break byte case catch char class const continue default do double else enum \
                 extends false final finally float for if implements import instanceof int interface long native new \
                 null package private protected public return short static super switch synchronized this throw throws \
                 true try void volatile while"
            }
            Self::C => {
                "auto bool break case catch char class const constexpr continue default delete do double else enum \
                 explicit extern false float for friend goto if inline int long namespace new noexcept nullptr NULL \
                 operator override private protected public return short signed sizeof static struct switch template \
                 this throw true try typedef typename union unsigned using virtual void volatile while"
            }
            Self::CSharp => {
                "abstract as async await base bool break byte case catch char checked class const continue decimal \
                 default delegate do double else enum event explicit extern false finally fixed float for foreach get \
                 if implicit in int interface internal is lock long namespace new null object operator out override \
                 params private protected public readonly ref return sealed set short sizeof static string struct \
                 switch this throw true try typeof uint ulong using var virtual void while yield"
            }
            Self::Ruby => {
                "alias and begin break case class def defined? do else elsif end ensure false for if in module next nil \
                 not or redo rescue retry return self super then true undef unless until when while yield"
            }
            Self::Php => {
                "abstract and array as break case catch class clone const continue declare default do echo else elseif \
                 empty endif enum extends false final finally fn for foreach function global if implements include \
                 instanceof insteadof interface isset match namespace new null or private protected public readonly \
                 require return static switch throw trait true try unset use var while yield"
            }
            Self::Bash => {
                "if then else elif fi for in do done while until case esac function local return export readonly declare"
            }
        }
    }
}

/// Returns the FNV-1a hash of a text, folded once more to improve its low bits.
pub(super) fn hash_text(text: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for &byte in text {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash ^ (hash >> 15)
}

/// Hashes of a family's keywords, in buckets by their low byte.
pub(super) struct KeywordHashes([[u32; 6]; 256]);

pub(super) static KEYWORDS: LazyLock<[KeywordHashes; 10]> = LazyLock::new(|| {
    [
        LanguageFamily::Rust,
        LanguageFamily::Python,
        LanguageFamily::Script,
        LanguageFamily::Go,
        LanguageFamily::Java,
        LanguageFamily::C,
        LanguageFamily::CSharp,
        LanguageFamily::Ruby,
        LanguageFamily::Php,
        LanguageFamily::Bash,
    ]
    .map(|family| {
        let mut table = [[0u32; 6]; 256];
        for word in family.keywords().split_whitespace() {
            let hash = hash_text(word.as_bytes());
            if let Some(slot) = table[(hash & 255) as usize].iter_mut().find(|slot| **slot == 0) {
                *slot = hash;
            }
        }
        KeywordHashes(table)
    })
});

impl KeywordHashes {
    pub(super) fn contains(&self, hash: u32) -> bool {
        self.0[(hash & 255) as usize].contains(&hash)
    }
}

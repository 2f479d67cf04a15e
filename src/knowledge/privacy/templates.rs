//! Provides code before and after an edit as templates, to be filled with arbitrary words.

use proptest::prelude::*;

use crate::syntax::language::Language;

/// Code of every language before and after an edit, with slots for a name (`N`), another name (`M`), a type (`T`),
/// the content of a string (`S`), a number (`9`) and a comment (`C`).
pub(super) const TEMPLATES: &[(Language, &str, &str)] = &[
    (
        Language::Rust,
        "/// C\nfn N(M: T<u8>) -> Option<T> { if N.M == \"S\" { return N!(M, \"S\"); } // C\n let N = M.N(9, \"S\")?; g::<T>(N); match N { T::M(x) => x, _ => 9 } }",
        "/// C\nfn N(M: T<u8>) -> Option<T> { if N.M != \"S\" { return N!(M, \"S\"); } // C\n M.N(); let N = M.M(9 + 9, \"S\")?; g::<T>(&N); match N { T::M(x) => Some(x), _ => 9 } }",
    ),
    (
        Language::Python,
        "class T(N):\n    \"\"\"S\"\"\"\n    def N(self, M: T = 9, *N):\n        # C\n        if N == None and M['S']:\n            return f'S{N}S'\n        self.N = lambda M: N(M, S=9)\n        return [N for N in M]\n",
        "class T(N):\n    \"\"\"S\"\"\"\n    def N(self, M: T = 9, *N):\n        # C\n        if N is None and M['SS']:\n            return f'S{M}S'\n        N.M('S')\n        self.M = lambda M: M(N, S=99)\n        return {N for M in N}\n",
    ),
    (
        Language::JavaScript,
        "// C\nfunction N(M, {T}) { if (N == M.N) { return `S${M}S`; } const T = async (N) => await N.M('S', /S/g, 9); N.T[M](); return <T N=\"S\">S{M}</T>; }",
        "// C\nfunction N(M, {T}) { if (N === M.N) { return `S${N}S`; } const T = async (M) => N.M('S', /S/g, 99); if (N) { N.T[M](); } return <T N=\"SS\">S{N}</T>; }",
    ),
    (
        Language::TypeScript,
        "/* C */ class T<N> extends M implements N { private N: T = 9; @N('S') M(N?: T): N { return this.N as unknown as T; } }",
        "/* C */ class T<N> extends M implements N { private N: T = 99; @N('S') M(N?: T): N { return (this.M ?? 'S') as unknown as N; } }",
    ),
    (
        Language::Tsx,
        "const N = (M: T) => { return <T.N M={N.M(9)}>S</T.N>; }",
        "const N = (M: T) => { return <T.N M={N.N(9, 'S')}>SS</T.N>; }",
    ),
    (
        Language::Go,
        "package N\n// C\nfunc (M *T) N(M map[T]N) (T, error) {\n\tN, err := M.N(`S`, 'x', 9)\n\tgo N.M(&T{N: M})\n\treturn N, err\n}\n",
        "package N\n// C\nfunc (M *T) N(M map[T]N) (T, error) {\n\tN, err := M.M(`S`, 'x', 99)\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tgo N.M(&T{M: N})\n\treturn M, err\n}\n",
    ),
    (
        Language::Java,
        "import java.util.Vector; import N.M.T; /** C */ @N(M = \"S\") class T extends N<M> { T N(final T... M) throws N { if (N.M == null) { throw new T(\"S\" + 9); } /* C */ return (T) M.N(T::M, x -> N[9]); } }",
        "import java.util.List; import M.N.T; /** C */ @N(M = \"S\") class T extends N<M> { T N(final T... M) throws N { if (N.M != null || N) { throw new N(\"S\" + 9, M); } /* C */ M.N(); return (N) N.M(N::M, x -> M[9]); } }",
    ),
    (
        Language::Kotlin,
        "// C\n@N(\"S\")\nclass T : N<M>() {\n  fun N(M: T): N? {\n    if (N.M == \"S\") { throw T(\"S${N}S\" + 9) }\n    // C\n    val N = M.N(9, \"S\")\n    return M.N { N -> N[9] } as T\n  }\n}\n",
        "// C\n@N(\"S\")\nclass T : N<M>() {\n  fun N(M: T): N? {\n    if (N.M != \"S\") { throw T(\"S${M}S\" + 9) }\n    // C\n    M.N()\n    val N = M.M(9 + 9, \"S\")\n    return M.N { N -> N[99] } as T\n  }\n}\n",
    ),
    (
        Language::Scala,
        "// C\n@N(\"S\")\nclass T extends N[M] {\n  def N(M: T): Option[N] = {\n    if (N.M == \"S\") { throw new T(s\"S${N}S\" + 9) }\n    // C\n    val N = M.N(9, \"S\")\n    M.N { N => N(9) }\n  }\n}\n",
        "// C\n@N(\"S\")\nclass T extends N[M] {\n  def N(M: T): Option[N] = {\n    if (N.M != \"S\") { throw new T(s\"S${M}S\" + 9) }\n    // C\n    M.N()\n    val N = M.M(9 + 9, \"S\")\n    M.N { N => N(99) }\n  }\n}\n",
    ),
    (
        Language::Swift,
        "// C\n@N(\"S\")\nclass T: N<M> {\n  func N(M: T) throws -> N? {\n    if N.M == \"S\" { throw T(\"S\\(N)S\" + 9) }\n    // C\n    let N = M.N(9, \"S\")\n    return M.N { N in N[9] } as? T\n  }\n}\n",
        "// C\n@N(\"S\")\nclass T: N<M> {\n  func N(M: T) throws -> N? {\n    if N.M != \"S\" { throw T(\"S\\(M)S\" + 9) }\n    // C\n    M.N()\n    let N = M.M(9 + 9, \"S\")\n    return M.N { N in N[99] } as? T\n  }\n}\n",
    ),
    (
        Language::C,
        "#include \"S\"\n#define N M\n/* C */\nstatic struct T *N(T *M) { if (M->N == 9) goto N; N: M = (T *)N(\"S\", sizeof(struct T), 'x'); return *M; }\n",
        "#include \"S\"\n#define N M\n/* C */\nstatic struct T *N(T *M) { if (M->N != 9) goto N; N: M = (T *)M(\"S\", sizeof(T), 'x', 9); return M; }\n",
    ),
    (
        Language::Cpp,
        "// C\nnamespace N { template <typename T> auto T::N(const M<T> &N) -> T { return std::move(N->M<T>(9, \"S\", [&M](T N) { return M; })); } }",
        "// C\nnamespace N { template <typename T> auto T::N(const M<T> &N) -> T { return N->N<T>(99, \"S\", [=](T N) { return N; }); } }",
    ),
    (
        Language::CSharp,
        "// C\n[N(\"S\")] class T : N<M> { public async Task<T> N(M M, string N = \"S\") { var N = await M.N<T>($\"S{N}S\", 9); return N?.M ?? throw new T(nameof(M)); } }",
        "// C\n[N(\"S\")] class T : N<M> { public async Task<T> N(M M, string N = \"S\") { var N = M.M<T>($\"S{M}S\", 99); N.M(); return N!.N ?? throw new N(nameof(N), M); } }",
    ),
    (
        Language::Ruby,
        "# C\nclass T < N\n  def N(M, N: 9)\n    M.N(:S, \"S#{N}\") if @N && $M\n    N.M { |M| M.N }\n    @N ||= M[9]\n  end\nend\n",
        "# C\nclass T < N\n  def N(M, N: 9)\n    M.M(:S, \"SS#{N}\") unless @N || $M\n    N&.N { |M| M.M }\n    @N ||= N[9] + 'S'\n  end\nend\n",
    ),
    (
        Language::Php,
        "<?php // C\nnamespace N\\M; class T extends N { function N(T $M, $N = 'S') { if ($M == \"S$N\") { return N::M($N['S'], 9); } $this->N->M(fn($M) => new T($M)); } }",
        "<?php // C\nnamespace N\\M; class T extends N { function N(T $M, $N = 'S') { if ($M === \"S$N\") { return M::N($N['S'] ?? 9); } $this->M?->N(fn($M) => new N($N, 'S')); } }",
    ),
    (
        Language::Bash,
        "# C\nN() {\n  local M=\"S$N\"\n  if [ -z $M ]; then N --M S | M 9 > N; fi\n  ${N:-S} $(M S)\n}\n",
        "# C\nN() {\n  local M=\"SS$N\"\n  if [[ -n $N ]]; then N --N SS | N 99 > M; fi\n  M S\n  ${M:-S} \"$(M S)\"\n}\n",
    ),
];

/// Generates words that a user might write: secrets, names that look like placeholders, non-ASCII letters.
pub(super) fn arbitrary_words() -> impl Strategy<Value = [String; 6]> {
    let name = || {
        prop_oneof![
            4 => "[a-zA-Z][a-zA-Z0-9]{5,12}zq",
            1 => "zq[a-z]{0,3}_[A-Z]{2}",
            1 => Just("VARIABLE".to_owned()),
            1 => Just("BODY_2".to_owned()),
            1 => Just("größeÄzq".to_owned()),
        ]
    };
    let text = "[a-zA-Z0-9 .:/_-]{0,30}zq";
    (name(), name(), name(), text, "[1-9][0-9]{0,6}", text)
        .prop_map(|(n, m, t, s, number, comment)| [n, m, t, s, number, comment])
}

pub(super) fn fill_template(template: &str, [n, m, t, s, number, comment]: &[String; 6]) -> String {
    // A letter that stands alone is a slot.
    let chars: Vec<char> = template.chars().collect();
    let is_word = |at: Option<&char>| at.is_some_and(|c| c.is_alphanumeric() || *c == '_');
    let mut filled = String::new();
    for (at, &c) in chars.iter().enumerate() {
        let is_alone = !is_word(at.checked_sub(1).and_then(|at| chars.get(at))) && !is_word(chars.get(at + 1));
        match c {
            'N' if is_alone => filled.push_str(n),
            'M' if is_alone => filled.push_str(m),
            'T' if is_alone => filled.push_str(t),
            'S' if is_alone => filled.push_str(s),
            'C' if is_alone => filled.push_str(comment),
            '9' => filled.push_str(number),
            _ => filled.push(c),
        }
    }
    filled
}

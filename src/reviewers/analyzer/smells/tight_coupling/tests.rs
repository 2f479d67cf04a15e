use super::*;
use crate::syntax::source::Parsers;

fn find_smells(path: &str, code: &str) -> Vec<Smell> {
    let language = Language::detect(path, code.as_bytes()).expect("a language");
    let mut parsers = Parsers::default();
    let source = parsers.parse(path, language, code.as_bytes()).expect("parses");
    let facts = FileFacts::from_parsed(&source);
    let mut out = Vec::new();
    check(&source, &facts, &Limits::default(), &mut out);
    out
}

#[test]
fn constructors_that_make_their_own() {
    for (path, code, title, priority) in [
        (
            "a.py",
            "class Shop:\n    def __init__(self):\n        self.a = Alpha()\n        self.b = pkg.Beta(1)\n        self.c: Gamma = Gamma()\n",
            "`Shop` makes `Alpha`, `Beta`, `Gamma` itself",
            Priority::P2,
        ),
        (
            "a.py",
            "class Shop:\n    def __init__(self):\n        self.mail = EmailService()\n",
            "`Shop` makes `EmailService` itself",
            Priority::P3,
        ),
        (
            "a.js",
            "class Shop { constructor() { this.a = new PaymentClient(); } }",
            "`Shop` makes `PaymentClient` itself",
            Priority::P3,
        ),
        (
            "a.js",
            "class Shop { a = new Alpha(); b = new Beta(); constructor() { this.c = new Gamma() } }",
            "`Shop` makes `Alpha`, `Beta`, `Gamma` itself",
            Priority::P2,
        ),
        (
            "a.ts",
            "class Shop { private a: A = new UserRepository(); }",
            "`Shop` makes `UserRepository` itself",
            Priority::P3,
        ),
        (
            "a.tsx",
            "class Shop { constructor() { this.a = new UserRepository() as A; } }",
            "`Shop` makes `UserRepository` itself",
            Priority::P3,
        ),
        (
            "A.java",
            "class Shop { private Alpha a = new Alpha(); Beta b; Shop() { this.b = new Beta(); c = new Gamma<X>(); } }",
            "`Shop` makes `Alpha`, `Beta`, `Gamma` itself",
            Priority::P2,
        ),
        (
            "a.cs",
            "class Shop { private readonly Mailer m = new Mailer(); }",
            "`Shop` makes `Mailer` itself",
            Priority::P3,
        ),
        (
            "a.cs",
            "class Shop { Shop() { _a = new Alpha(); this.b = new Beta(); C = new Gamma(); } }",
            "`Shop` makes `Alpha`, `Beta`, `Gamma` itself",
            Priority::P2,
        ),
        (
            "a.cpp",
            "class Shop { Shop() : a(new Alpha()), b(std::make_unique<Beta>(1)) { this->c = new Gamma(); } };",
            "`Shop` makes `Alpha`, `Beta`, `Gamma` itself",
            Priority::P2,
        ),
        (
            "a.rb",
            "class Shop\n  def initialize\n    @mail = Mail::Sender.new(1)\n  end\nend\n",
            "`Shop` makes `Sender` itself",
            Priority::P3,
        ),
        (
            "a.php",
            "<?php class Shop { public function __construct() { $this->mail = new Mailer(); } }",
            "`Shop` makes `Mailer` itself",
            Priority::P3,
        ),
        (
            "a.rs",
            "impl Shop { fn new() -> Self { Self { a: AClient::new(), b: BClient::new(1), c: CService::default() } } }",
            "`Shop` makes `AClient`, `BClient`, `CService` itself",
            Priority::P2,
        ),
        (
            "a.go",
            "package a\nfunc NewShop() *Shop { return &Shop{a: NewAClient(), b: pkg.NewBClient(1), c: NewCService()} }",
            "`NewShop` makes `AClient`, `BClient`, `CService` itself",
            Priority::P2,
        ),
    ] {
        let found = find_smells(path, code);
        assert_eq!(found.len(), 1, "{path}: {code}\n{found:?}");
        assert_eq!((found[0].title.as_str(), found[0].priority), (title, priority), "{path}: {code}");
    }
}

#[test]
fn constructors_that_do_not() {
    for (path, code) in [
        (
            "a.py",
            "class Shop:\n    def __init__(self, mail):\n        self.mail = mail or EmailService()\n        self.a = OrderedDict()\n        self.b = Lock()\n        self.c = Path()\n        self.d = make()\n",
        ),
        ("a.py", "class Shop:\n    def open(self):\n        self.mail = EmailService()\n"),
        ("a.py", "def f():\n    x.mail = EmailService()\n"),
        (
            "a.js",
            "class Shop { constructor(mail) { this.mail = mail; this.a = new Map(); this.b = new Date(); } open() { this.c = new PaymentClient() } }",
        ),
        ("a.js", "class Shop { constructor() { this.make = () => { this.c = new PaymentClient() } } }"),
        (
            "A.java",
            "class Shop { static final UserService S = new UserService(); private List<X> a = new ArrayList<>(); Alpha b = new Alpha(); Beta c = new Beta(); }",
        ),
        (
            "a.cs",
            "class Shop { private readonly object gate = new object(); Dictionary<A, B> d = new Dictionary<A, B>(); }",
        ),
        ("a.rb", "class Shop\n  def initialize(mail)\n    @mail = mail\n    @a = Set.new\n  end\nend\n"),
        (
            "a.rs",
            "impl Shop { fn new() -> Self { Self { a: Alpha::new(), b: Vec::new(), c: Gamma::new(), d: Delta::new() } } }",
        ),
        ("a.go", "package a\nfunc NewShop() *Shop { return &Shop{a: NewAClient(), b: sync.NewCond()} }"),
        ("tests/a.py", "class Shop:\n    def __init__(self):\n        self.mail = EmailService()\n"),
    ] {
        let found = find_smells(path, code);
        assert!(found.is_empty(), "{path}: {code}\n{found:?}");
    }
}

#[test]
fn imports_that_climb() {
    for (path, code, levels) in [
        ("a.py", "from ...pkg import x\n", Some(3)),
        ("a.py", "from ..pkg import x\n", None),
        ("a.js", "import a from '../../../a'\nimport b from '../../../../b'\n", Some(3)),
        ("a.js", "import a from '../../a'\n", None),
        ("a.ts", "export { a } from '../../../a';\n", Some(3)),
        ("a.tsx", "const a = require('../../../../a')\n", Some(4)),
        ("a.ts", "const a = f('../../../a')\n", None),
        ("a.c", "#include \"../../../a.h\"\n", Some(3)),
        ("a.cpp", "#include \"../a.h\"\n#include <a/../../../b>\n", None),
        ("a.rs", "use super::super::super::a;\n", Some(3)),
        ("a.rs", "use super::super::a;\n", None),
        ("a.php", "<?php require_once __DIR__ . '/../../../a.php';", Some(3)),
    ] {
        let found = find_smells(path, code);
        let expected = levels.map(|levels| format!("climbs {levels} levels"));
        assert_eq!(found.len(), usize::from(expected.is_some()), "{path}: {code}\n{found:?}");
        assert!(expected.is_none_or(|expected| found[0].title.ends_with(&expected)), "{path}: {code}\n{found:?}");
    }
    let two = find_smells("a.js", "import a from '../../../a'\nimport b from '../../../../b'\n");
    assert!(two[0].explanation.contains("1 more import"), "{:?}", two[0]);
}

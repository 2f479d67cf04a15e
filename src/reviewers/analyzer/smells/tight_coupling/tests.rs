use super::super::test_support::check_samples;
use super::*;

#[test]
fn constructors_that_make_their_own() {
    check_samples(
        &SMELL,
        r#"
//- a.py
class Shop:
    def __init__(self):
        self.a = Alpha() //~ p2 `Shop` makes `Alpha`, `Beta`, `Gamma` itself
        self.b = pkg.Beta(1)
        self.c: Gamma = Gamma()
//- a.py
class Shop:
    def __init__(self):
        self.mail = EmailService() //~ p3 `Shop` makes `EmailService` itself
//- a.js
class Shop { constructor() { this.a = new PaymentClient(); } } //~ p3 `Shop` makes `PaymentClient` itself
//- a.js
class Shop { a = new Alpha(); b = new Beta(); constructor() { this.c = new Gamma() } }
//~ p2 `Shop` makes `Alpha`, `Beta`, `Gamma` itself
//- a.ts
class Shop { private a: A = new UserRepository(); } //~ p3 `Shop` makes `UserRepository` itself
//- a.tsx
class Shop { constructor() { this.a = new UserRepository() as A; } }
//~ p3 `Shop` makes `UserRepository` itself
//- A.java
class Shop { private Alpha a = new Alpha(); Beta b; Shop() { this.b = new Beta(); c = new Gamma<X>(); } }
//~ p2 `Shop` makes `Alpha`, `Beta`, `Gamma` itself
//- a.cs
class Shop { private readonly Mailer m = new Mailer(); } //~ p3 `Shop` makes `Mailer` itself
//- a.cs
class Shop { Shop() { _a = new Alpha(); this.b = new Beta(); C = new Gamma(); } }
//~ p2 `Shop` makes `Alpha`, `Beta`, `Gamma` itself
//- a.cpp
class Shop { Shop() : a(new Alpha()), b(std::make_unique<Beta>(1)) { this->c = new Gamma(); } };
//~ p2 `Shop` makes `Alpha`, `Beta`, `Gamma` itself
//- a.rb
class Shop
  def initialize
    @mail = Mail::Sender.new(1) //~ p3 `Shop` makes `Sender` itself
  end
end
//- a.php
<?php class Shop { public function __construct() { $this->mail = new Mailer(); } }
//~ p3 `Shop` makes `Mailer` itself
//- a.rs
impl Shop { fn new() -> Self { Self { a: AClient::new(), b: BClient::new(1), c: CService::default() } } }
//~ p2 `Shop` makes `AClient`, `BClient`, `CService` itself
//- a.go
package a
func NewShop() *Shop { return &Shop{a: NewAClient(), b: pkg.NewBClient(1), c: NewCService()} }
//~ p2 `NewShop` makes `AClient`, `BClient`, `CService` itself
"#,
    );
}

#[test]
fn constructors_that_do_not() {
    check_samples(
        &SMELL,
        r#"
//- a.py
class Shop:
    def __init__(self, mail):
        self.mail = mail or EmailService()
        self.a = OrderedDict()
        self.b = Lock()
        self.c = Path()
        self.d = make()
//- a.py
class Shop:
    def open(self):
        self.mail = EmailService()
//- a.py
def f():
    x.mail = EmailService()
//- a.js
class Shop { constructor(mail) { this.mail = mail; this.a = new Map(); this.b = new Date(); } open() { this.c = new PaymentClient() } }
//- a.js
class Shop { constructor() { this.make = () => { this.c = new PaymentClient() } } }
//- A.java
class Shop { static final UserService S = new UserService(); private List<X> a = new ArrayList<>(); Alpha b = new Alpha(); Beta c = new Beta(); }
//- a.cs
class Shop { private readonly object gate = new object(); Dictionary<A, B> d = new Dictionary<A, B>(); }
//- a.rb
class Shop
  def initialize(mail)
    @mail = mail
    @a = Set.new
  end
end
//- a.rs
impl Shop { fn new() -> Self { Self { a: Alpha::new(), b: Vec::new(), c: Gamma::new(), d: Delta::new() } } }
//- a.go
package a
func NewShop() *Shop { return &Shop{a: NewAClient(), b: sync.NewCond()} }
//- tests/a.py
class Shop:
    def __init__(self):
        self.mail = EmailService()
"#,
    );
}

#[test]
fn imports_that_climb() {
    let found = check_samples(
        &SMELL,
        r#"
//- a.py
from ...pkg import x //~ p3 `...pkg` climbs 3 levels
//- a.py
from ..pkg import x
//- a.js
import a from '../../../a' //~ p3 `../../../a` climbs 3 levels
import b from '../../../../b'
//- a.js
import a from '../../a'
//- a.ts
export { a } from '../../../a'; //~ p3 `../../../a` climbs 3 levels
//- a.tsx
const a = require('../../../../a') //~ p3 `../../../../a` climbs 4 levels
//- a.ts
const a = f('../../../a')
//- a.c
#include "../../../a.h" //~ p3 `../../../a.h` climbs 3 levels
//- a.cpp
#include "../a.h"
#include <a/../../../b>
//- a.rs
use super::super::super::a; //~ p3 `super::super::super::a` climbs 3 levels
//- a.rs
use super::super::a;
//- a.php
<?php require_once __DIR__ . '/../../../a.php'; //~ p3 `/../../../a.php` climbs 3 levels
"#,
    );
    let two = found.iter().find(|smell| smell.line_end > smell.line_start).expect("the sample with two imports");
    assert!(two.explanation.contains("1 more import"), "{two:?}");
}

//! TIGHT_COUPLING: reports constructors that create their own collaborators, and imports that climb out of their
//! folder.
//!
//! A class that a constructor creates cannot be replaced from outside, least of all in a test. Collections, locks and
//! values are not collaborators; their names are in `assets/smells.toml`.

#[cfg(test)]
mod tests;

use serde::Deserialize;

use super::syntax::{SmellFieldIds, has_word, last_identifier};
use super::{CheckedFile, GrowthComparison, Smell, SmellBuilder, SmellDefinition, SmellGrade};
use crate::domain::{Confidence, Kind, LineRange, Priority, Severity};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::conventions::conventions;
use crate::syntax::definition::PerLanguage;
use crate::syntax::language::Language;
use crate::syntax::role_map::RoleMap;
use crate::syntax::source::{MAX_SEARCHED_BYTES, NodeIndex, ParsedFile};

/// TIGHT_COUPLING in the registry.
pub const SMELL: SmellDefinition = SmellDefinition { kind: Kind::TightCoupling, check, growth: GrowthComparison::None };

/// Thresholds of TIGHT_COUPLING: the table `tight_coupling` of `assets/smells.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TightCouplingLimits {
    pub enabled: bool,
    pub max_concretes_in_constructor: u32,
    pub max_relative_depth: u32,
    pub service_words: Vec<String>,
    pub value_words: Vec<String>,
    pub value_types: Vec<String>,
}

/// Role of a node for coupling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CouplingRole {
    #[default]
    None,
    /// `new Foo()`, or a call that may create an object.
    Construction,
    /// Gives a field its value: an assignment, a field with an initial value, a member of a struct literal.
    Field,
    /// A function that may be a constructor.
    Function,
    /// A class with its name.
    Class,
    Import,
    Transparent,
    /// A closure or an inner function, which creates its objects later.
    Deferred,
}

struct CouplingRoles {
    map: RoleMap<CouplingRole>,
    fields: SmellFieldIds,
}

static ROLES: PerLanguage<CouplingRoles> = PerLanguage::new(|language| CouplingRoles {
    map: RoleMap::from_section(language, "coupling"),
    fields: SmellFieldIds::new(language),
});

/// A class that a field gets, with its name as written.
struct ConstructedClass<'a> {
    /// Index of the node that stands for the class with the field.
    owner: u32,
    row: u32,
    class: &'a str,
    is_service: bool,
}

/// Reports the tight coupling of a file.
fn check(file: &CheckedFile<'_, '_>, out: &mut Vec<Smell>) {
    let CheckedFile { source, facts, limits, .. } = *file;
    if facts.is_test_file {
        return;
    }
    let reader = CouplingReader { source, roles: ROLES.get(source.language), limits: &limits.tight_coupling };
    let mut made: Vec<ConstructedClass<'_>> = Vec::new();
    let mut imports: Vec<(u32, &str, usize)> = Vec::new();
    for (index, node) in source.walk() {
        match reader.roles.map.get(node.kind) {
            CouplingRole::Construction => {
                if let Some(found) = reader.find_constructed_class(index)
                    && !facts.is_test_at(index)
                {
                    made.push(found);
                }
            }
            CouplingRole::Import => {
                if let Some((path, depth)) = reader.parse_import(index)
                    && depth > limits.tight_coupling.max_relative_depth as usize
                    && !facts.is_test_at(index)
                {
                    imports.push((node.row, path, depth));
                }
            }
            _ => {}
        }
    }
    made.sort_by_key(|found| (found.owner, found.class, found.row));
    made.dedup_by_key(|found| (found.owner, found.class));
    made.sort_by_key(|found| (found.owner, found.row));
    for group in made.chunk_by(|a, b| a.owner == b.owner) {
        report_constructed_classes(group, &reader, out);
    }
    report_imports(&imports, limits, out);
}

struct CouplingReader<'a, 's> {
    source: &'s ParsedFile<'a>,
    roles: &'static CouplingRoles,
    limits: &'s TightCouplingLimits,
}

impl<'a> CouplingReader<'a, '_> {
    fn role(&self, index: NodeIndex) -> CouplingRole {
        self.roles.map.get(self.source.nodes[index].kind)
    }

    /// Returns the concrete class that a field gets in a constructor.
    fn find_constructed_class(&self, index: NodeIndex) -> Option<ConstructedClass<'a>> {
        let source = self.source;
        let class = self.constructed_class_name(index)?;
        let limits = self.limits;
        let is_value = has_word(class, &limits.value_words) || limits.value_types.iter().any(|known| known == class);
        if is_value {
            return None;
        }
        let mut holder = source.parent(index);
        let mut child = index;
        for _ in 0..3 {
            if self.role(holder) != CouplingRole::Transparent {
                break;
            }
            child = holder;
            holder = source.parent(holder);
        }
        if self.role(holder) != CouplingRole::Field || !self.is_own_field(holder, child) {
            return None;
        }
        let owner = self.find_owner(holder)?;
        let is_service = has_word(class, &limits.service_words);
        Some(ConstructedClass { owner: owner as u32, row: source.nodes[index].row, class, is_service })
    }

    /// Returns the class of the object that an expression creates.
    fn constructed_class_name(&self, index: NodeIndex) -> Option<&'a str> {
        const MAX_CLASS_PATH_BYTES: usize = 128;
        let source = self.source;
        // The expression can be as long as the file and contain further such expressions, so only its start is read.
        let text = source.text_prefix(&source.nodes[index], MAX_CLASS_PATH_BYTES);
        let head = text.split(['(', '{', '<']).next().unwrap_or("").trim();
        let class = match source.language {
            Language::Rust => {
                let path = head.strip_suffix("::new").or_else(|| head.strip_suffix("::default"))?;
                path.rsplit("::").next()?
            }
            // Also `module.Class()`.
            _ if conventions(source.language).objects_by_calls => head.rsplit('.').next()?,
            Language::Ruby => text.split(['(', ' ', '\n']).next()?.strip_suffix(".new")?.rsplit("::").next()?,
            Language::Go => head.rsplit('.').next()?.strip_prefix("New")?,
            Language::Cpp if head.ends_with("make_unique") || head.ends_with("make_shared") => {
                let inner = text.split_once('<')?.1;
                inner.split(['>', '<', '(']).next()?.rsplit("::").next()?.trim()
            }
            _ => last_identifier(head.strip_prefix("new")?.as_bytes()),
        };
        let mut letters = class.chars();
        let is_class = letters.next().is_some_and(char::is_uppercase) && letters.any(char::is_lowercase);
        (is_class && class.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(class)
    }

    /// Returns whether a target is a field of the object: `this.x`, `self.x`, `@x` or `x_` in an assignment, or a field
    /// declared outside of functions.
    fn is_own_field(&self, holder: NodeIndex, child: NodeIndex) -> bool {
        let source = self.source;
        let head = std::str::from_utf8(source.text_up_to(&source.nodes[holder], &source.nodes[child])).unwrap_or("");
        let target = head.split(['=', ':']).next().unwrap_or("").trim();
        let conventions = conventions(source.language);
        if conventions.own_members.iter().any(|own| target.starts_with(&**own)) {
            return true;
        }
        let declared = source.child_by_field(holder, self.roles.fields.left).is_none();
        match source.language {
            // The declaration is the parent of the declarator.
            Language::Java | Language::CSharp | Language::Cpp if declared => {
                let parent_text = source.text_prefix(&source.nodes[source.parent(holder)], MAX_SEARCHED_BYTES);
                !parent_text.split_whitespace().take(5).any(|word| word == "static")
            }
            _ if declared && conventions.members_only_in_constructors => false,
            _ if declared && (conventions.objects_by_calls || !conventions.singletons.is_empty()) => {
                let is_shared = conventions.static_words.iter().any(|word| has_word(head, &[word]));
                !is_shared && self.role(source.parent(source.parent(holder))) == CouplingRole::Class
            }
            _ if declared => true,
            // An assignment to a bare name may set a field too.
            _ => conventions.bare_members && !target.contains(['[', ' ']),
        }
    }

    /// Returns the node that stands for the class whose constructor or field this is.
    fn find_owner(&self, field: NodeIndex) -> Option<NodeIndex> {
        let source = self.source;
        let mut in_constructor = false;
        let mut class = None;
        let mut at = field;
        loop {
            let parent = source.parent(at);
            if parent == at || !source.work().spend(1) {
                break;
            }
            let part = self.role(parent);
            if part == CouplingRole::Function {
                if in_constructor || !self.is_constructor(parent) {
                    return None;
                }
                in_constructor = true;
                class = Some(parent);
            } else if part == CouplingRole::Class {
                class = Some(parent);
                break;
            } else if part == CouplingRole::Deferred {
                return None;
            }
            at = parent;
        }
        let needs_constructor = conventions(source.language).members_only_in_constructors;
        class.filter(|_| in_constructor || !needs_constructor)
    }

    fn is_constructor(&self, function: NodeIndex) -> bool {
        let source = self.source;
        let name =
            source.child_by_field(function, self.roles.fields.name).map_or("", |name| source.text(&source.nodes[name]));
        match source.language {
            Language::Go => name.starts_with("New"),
            Language::Cpp => {
                // A definition without a type before its declarator is a constructor.
                let node = &source.nodes[function];
                source.child_by_field(function, self.roles.fields.declarator).is_some_and(|declarator| {
                    let before = source.text_up_to(node, &source.nodes[declarator]).trim_ascii();
                    before.is_empty() || before == b"explicit" || before == b"inline"
                })
            }
            _ => {
                let constructors = &conventions(source.language).constructors;
                constructors.is_empty() || name.is_empty() || constructors.iter().any(|known| known == name)
            }
        }
    }

    fn class_name(&self, owner: NodeIndex) -> &'a str {
        let source = self.source;
        let fields = &self.roles.fields;
        // `impl Default for Shop<T>` has the name of its type.
        let is_impl = source.language == Language::Rust;
        let name = source.child_by_field(owner, if is_impl { fields.of_type } else { fields.name });
        match name.map(|name| source.text(&source.nodes[name])) {
            Some(name) => last_identifier(name.split('<').next().unwrap_or(name).as_bytes()),
            // A C++ constructor defined outside of its class: `Shop::Shop() {`.
            None => last_identifier(source.text(&source.nodes[owner]).split('(').next().unwrap_or("").as_bytes()),
        }
    }

    /// Returns the path of an import and the number of folders that it climbs.
    fn parse_import(&self, index: NodeIndex) -> Option<(&'a str, usize)> {
        const MAX_IMPORT_BYTES: usize = 2000;
        let source = self.source;
        let text = source.text(&source.nodes[index]);
        match source.language {
            // One dot is the package itself and each further dot climbs; the number includes the first dot.
            Language::Python => {
                let dots = text.bytes().take_while(|&byte| byte == b'.').count();
                Some((text, dots))
            }
            Language::Rust => {
                let path = text.trim_start_matches("pub ").strip_prefix("use ")?;
                let climbed = path.split("::").take_while(|part| part.trim() == "super").count();
                Some((path.split(['{', ';']).next().unwrap_or(path).trim_end_matches(':'), climbed))
            }
            Language::JavaScript | Language::TypeScript | Language::Tsx => {
                let is_import = text.starts_with("import")
                    // Also the call `import(…)`.
                    || text.starts_with("require(")
                    || (text.starts_with("export") && text.len() <= MAX_IMPORT_BYTES && text.contains(" from "));
                if !is_import || text.len() > MAX_IMPORT_BYTES {
                    return None;
                }
                let quote = text.rfind(['"', '\''])?;
                // The path comes last, except in an exported declaration with a body.
                if !text[quote + 1..].bytes().all(|byte| matches!(byte, b';' | b')' | b' ')) {
                    return None;
                }
                let before = &text[..quote];
                let start = before.rfind(['"', '\''])? + 1;
                parse_climbing_path(&before[start..])
            }
            _ => {
                let text = source.text_prefix(&source.nodes[index], MAX_IMPORT_BYTES);
                let quote = text.find(['"', '\''])?;
                let rest = &text[quote + 1..];
                parse_climbing_path(&rest[..rest.find(['"', '\''])?])
            }
        }
    }
}

fn parse_climbing_path(path: &str) -> Option<(&str, usize)> {
    let inside = path.trim_start_matches('/');
    let levels = inside.split('/').take_while(|part| matches!(*part, ".." | ".")).filter(|part| *part == "..").count();
    (levels > 0).then_some((path, levels))
}

fn report_constructed_classes(group: &[ConstructedClass<'_>], reader: &CouplingReader<'_, '_>, out: &mut Vec<Smell>) {
    let limits = reader.limits;
    let services = group.iter().filter(|made| made.is_service).count();
    // Constructors of Rust and Go often connect objects, so only classes with the name of a service count.
    let only_services = matches!(reader.source.language, Language::Rust | Language::Go);
    let count = if only_services { services } else { group.len() };
    let over = count > limits.max_concretes_in_constructor as usize;
    if !over && (services == 0 || only_services) {
        return;
    }
    let shown: Vec<&ConstructedClass<'_>> =
        group.iter().filter(|made| over && !only_services || made.is_service).collect();
    let Some(first) = shown.first() else { return };
    let names: Vec<String> = shown.iter().take(6).map(|made| format!("`{}`", made.class)).collect();
    let owner = reader.class_name(first.owner as usize);
    let line = first.row + 1;
    let last = shown.last().map_or(line, |made| made.row + 1);
    let grade = match over {
        true => SmellGrade::new(Priority::P2, Severity::Medium, Confidence::Medium),
        false => SmellGrade::new(Priority::P3, Severity::Low, Confidence::Low),
    };
    let explanation = if over {
        format!(
            "`{owner}` makes {count} concrete classes itself, more than {}: {}; nothing else can be put in their place.",
            limits.max_concretes_in_constructor,
            names.join(", ")
        )
    } else {
        format!(
            "`{owner}` makes {} itself, {services} of them named like a service; nothing else can be put in its place.",
            names.join(", ")
        )
    };
    let builder = SmellBuilder {
        kind: Kind::TightCoupling,
        grade,
        lines: LineRange::new(line, last),
        title: format!("`{owner}` makes {} itself", names.join(", ")),
        explanation,
        subject: owner.to_owned(),
    };
    let advice = "Take them as arguments of the constructor, by an interface where the language has one.";
    out.push(builder.build().with_figure(shown.len() as f64).with_advice(advice));
}

fn report_imports(imports: &[(u32, &str, usize)], limits: &Limits, out: &mut Vec<Smell>) {
    let Some(&(row, path, depth)) = imports.first() else { return };
    let deepest = imports.iter().map(|&(_, _, depth)| depth).max().unwrap_or(depth);
    let more = match imports.len() {
        1 => String::new(),
        count => format!(", and {} more imports of this file do so", count - 1),
    };
    // Extend to the last import, so that a change that adds another one touches these lines.
    let last = imports.last().map_or(row, |&(last, ..)| last);
    let builder = SmellBuilder {
        kind: Kind::TightCoupling,
        grade: SmellGrade::new(Priority::P3, Severity::Low, Confidence::Medium),
        lines: LineRange::new(row + 1, last + 1),
        title: format!("`{path}` climbs {depth} levels"),
        explanation: format!(
            "The import of `{path}` climbs {depth} levels, more than {}{more}; it breaks when either file moves.",
            limits.tight_coupling.max_relative_depth
        ),
        subject: "relative imports".to_owned(),
    };
    let smell = builder.build().with_figure((imports.len() * 100 + deepest) as f64);
    out.push(smell.with_advice("Import it by its absolute name, or by an alias of the project's root."));
}

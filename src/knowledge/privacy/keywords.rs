//! Lists the words that a form may hold besides the published names, written by hand.

/// Returns the keywords of a language and the other words in its grammar.
pub(super) fn keywords(language: &str) -> &'static str {
    match language {
        "rust" => {
            "as async await break const continue default dyn else enum extern fn for gen if impl in let loop macro_rules match \
             mod move mut pub raw ref return static struct trait try type union unsafe use where while yield"
        }
        "python" => {
            "and as assert async await break case class continue def del elif else except exec finally for from global if \
             import in is lambda match nonlocal not or pass print raise return try type while with yield"
        }
        "javascript" | "typescript" => {
            "abstract accessor any as assert asserts async await break case catch class const continue debugger declare default \
             delete do else enum export extends finally for from function get global if implements import in infer instanceof \
             interface is keyof let meta module namespace new of out override package private protected public readonly require \
             return satisfies set static super switch target throw try type typeof unique using var void while with yield"
        }
        "go" => {
            "break case chan const continue default defer else fallthrough for func go goto if import interface map package \
             range return select struct switch type var"
        }
        "java" => {
            "abstract assert break case catch class const continue default do else enum extends final finally for goto if \
             implements import instanceof interface module native new non-sealed open opens package permits private protected \
             public record requires return sealed static strictfp switch synchronized throw throws to transient transitive \
             try uses volatile when while with yield"
        }
        "kotlin" => {
            "abstract actual annotation as as? break by catch class companion const constructor context continue crossinline data \
             delegate do dynamic else enum expect external field file final finally for fun get if import in infix init inline \
             inner interface internal is it lateinit noinline object open operator out override package param private property \
             protected public receiver reified return return@ sealed set setparam super super@ suspend tailrec this this@ throw \
             try typealias val value var vararg when where while !in !is"
        }
        "scala" => {
            "abstract as case catch class def derives do else end enum erased export extends extension final finally for \
             forSome given if implicit import infix inline into lazy match new object opaque open override package private \
             protected return sealed then throw tracked trait transparent try type update uses using val var while with yield \
             consume"
        }
        "swift" => {
            "actor any as as? as! associatedtype async await borrowing break case catch class consuming continue convenience \
             default defer deinit didSet distributed do dynamic each else enum extension fallthrough fileprivate final for func \
             get guard if import in indirect infix init inout internal is isolated lazy let macro mutating nonisolated \
             nonmutating open operator optional override package postfix precedencegroup prefix private protocol public repeat \
             required rethrows return set some static struct subscript switch throw throws try try! try? typealias unowned var \
             weak where while willSet yield"
        }
        "c" | "cpp" => {
            "_Alignas _Alignof _Atomic _Bool _Generic _Nonnull _Noreturn __alignof __alignof__ __asm__ __asm __attribute \
             __attribute__ __extension__ __forceinline __inline __inline__ __restrict__ __thread __volatile__ __try __except \
             __finally __leave alignas alignof and and_eq asm auto bitand bitor break case catch class co_await co_return \
             co_yield compl concept consteval const constexpr constinit continue decltype default defined delete do else enum \
             explicit export extern final for friend goto if inline long mutable namespace new noexcept noreturn not not_eq \
             nullptr offsetof operator or or_eq override private protected public register requires restrict return short \
             signed sizeof static static_assert struct switch template this thread_local throw try typedef typename union \
             unsigned using virtual volatile while xor xor_eq __declspec __cdecl __stdcall __based __unaligned \
             #define #elif #elifdef #elifndef #else #endif #if #ifdef #ifndef #include"
        }
        "csharp" => {
            "abstract add alias allows and annotations as ascending async await base break by case catch checked class const \
             continue default delegate descending disable do else enum equals event explicit extern field file finally fixed \
             for foreach from get global goto group if implicit in init interface internal into is join let lock managed \
             nameof namespace new not notnull on operator or orderby out override params partial private protected public \
             readonly record ref remove required restore return scoped sealed select set sizeof stackalloc static struct \
             switch throw try typeof unchecked unmanaged unsafe using var virtual volatile warnings when where while with \
             yield __makeref __reftype __refvalue Cdecl Stdcall Thiscall Fastcall"
        }
        "ruby" => {
            "BEGIN END alias and begin break case class def defined? do else elsif end ensure for if in module next not or \
             redo rescue retry return then undef unless until when while yield"
        }
        "php" => {
            "abstract and array as break case catch class clone const continue declare default do echo else elseif enddeclare \
             endfor endforeach endif endswitch endwhile enum exit extends final finally fn for foreach from function get global \
             goto if implements include include_once instanceof insteadof interface list match namespace new or print private \
             protected public readonly require require_once return set static switch throw trait try unset use var while \
             xor yield"
        }
        "bash" => {
            "case declare do done elif else esac export fi for function if in local readonly select then typeset unset \
             unsetenv until while"
        }
        _ => "",
    }
}

//! Well-known functions whose failures matter, by language. Names are written as in calls.

/// Go functions that return only an error, or nothing else of use. By convention, errors of `fmt.Print*` and `Close`
/// are ignored.
pub const GO_ERROR_FUNCTIONS: &[&str] = &[
    "os.Remove",
    "os.RemoveAll",
    "os.Mkdir",
    "os.MkdirAll",
    "os.Rename",
    "os.Chdir",
    "os.Chmod",
    "os.Chown",
    "os.Setenv",
    "os.WriteFile",
    "ioutil.WriteFile",
    "os.Symlink",
    "os.Link",
    "os.Truncate",
    "json.Unmarshal",
    "xml.Unmarshal",
    "yaml.Unmarshal",
    "proto.Unmarshal",
    "io.Copy",
    "io.WriteString",
    "http.ListenAndServe",
    "http.ListenAndServeTLS",
    "http.Serve",
    "binary.Read",
    "binary.Write",
    "filepath.Walk",
    "filepath.WalkDir",
    "syscall.Kill",
    "rand.Read",
];

/// Go methods that return only an error, or nothing else of use.
pub const GO_ERROR_METHODS: &[&str] = &[
    "Unmarshal",
    "Decode",
    "Encode",
    "Commit",
    "ListenAndServe",
    "ListenAndServeTLS",
    "Exec",
    "ExecContext",
    "Scan",
    "Truncate",
];

/// Go methods that many types have, some of them without an error. A type of the file says nothing about the type of
/// another value.
pub const GO_COMMON_METHODS: &[&str] = &["Close", "Flush", "Read", "Write", "WriteString"];

/// Go packages whose functions return an error as their last result.
pub const GO_ERROR_PACKAGES: &[&str] = &[
    "strconv", "os", "io", "ioutil", "json", "xml", "yaml", "url", "net", "exec", "filepath", "sql", "base64", "hex",
    "user", "http", "regexp", "tls", "x509", "pem", "gzip", "zip", "rand", "template", "hex", "csv", "mail",
];

/// Functions of these packages whose last result is not an error.
pub const GO_INFALLIBLE_FUNCTIONS: &[&str] = &[
    "LookupEnv",
    "Cut",
    "Split",
    "CutPrefix",
    "CutSuffix",
    "Decode",
    "SplitHostPort",
    "FromContext",
    "ParseHTTPVersion",
    "BasicAuth",
];

/// Go methods that return a value and, as their last result, an error.
pub const GO_VALUE_AND_ERROR_METHODS: &[&str] = &[
    "ReadAll",
    "ReadFile",
    "Query",
    "QueryContext",
    "Exec",
    "ExecContext",
    "Prepare",
    "Begin",
    "BeginTx",
    "Marshal",
    "MarshalIndent",
    "MarshalJSON",
    "ParseInt",
    "ParseFloat",
    "ParseBool",
    "ParseUint",
    "Atoi",
    "NewRequest",
    "Dial",
    "DialContext",
    "Listen",
    "Accept",
    "Stat",
    "Lstat",
    "Output",
    "CombinedOutput",
    "ReadString",
    "ReadBytes",
    "ParseDuration",
    "RowsAffected",
    "LastInsertId",
];

/// Rust functions and methods whose failure matters if `let _ =` or `.ok();` hides it.
pub const RUST_FALLIBLE_FUNCTIONS: &[&str] = &[
    "remove_file",
    "remove_dir",
    "remove_dir_all",
    "create_dir",
    "create_dir_all",
    "rename",
    "copy",
    "write",
    "write_all",
    "set_permissions",
    "sync_all",
    "sync_data",
    "set_len",
    "hard_link",
    "symlink",
    "kill",
    "set_current_dir",
    "flush",
    "commit",
    "persist",
];

/// Rust calls that only decode their argument: for a literal, the result is known when the code is written. Calls that
/// read from outside (`fs::read("x")`, `File::open("x")`) are not included.
pub const RUST_DECODERS: &[&str] = &[
    "new",
    "parse",
    "parse_str",
    "from_str",
    "try_from",
    "try_new",
    "from_utf8",
    "from_bytes",
    "from_static",
    "from_hex",
    "compile",
    "builder",
];

/// Rust calls before `unwrap` that fail only after a panic of another thread.
pub const RUST_POISONING_CALLS: &[&str] = &[
    "lock",
    "read",
    "write",
    "join",
    "into_inner",
    "get_mut",
    "wait",
    "wait_while",
    "wait_timeout",
    "wait_timeout_while",
    "borrow",
    "borrow_mut",
    "try_borrow",
];

/// C functions that report a failure only by their return value.
pub const C_STATUS_FUNCTIONS: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "fopen",
    "fread",
    "fgets",
    "read",
    "write",
    "pread",
    "pwrite",
    "recv",
    "open",
    "chdir",
    "chroot",
    "setuid",
    "setgid",
    "seteuid",
    "setegid",
    "ftruncate",
    "truncate",
    "pipe",
    "dup2",
    "fscanf",
    "scanf",
    "sscanf",
    "system",
    "pthread_create",
    "fork",
    "mmap",
    "socket",
    "bind",
    "listen",
    "accept",
    "connect",
    "rename",
    "strdup",
    "asprintf",
    "fseek",
    "realpath",
    "posix_memalign",
];

/// C functions that return a null pointer on failure.
pub const C_NULLABLE_FUNCTIONS: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "strdup",
    "strndup",
    "fopen",
    "fdopen",
    "freopen",
    "opendir",
    "popen",
    "aligned_alloc",
    "tmpfile",
];

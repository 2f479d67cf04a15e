//! Well-known functions whose failures are worth a look, by language. Names as they are written in calls.

/// Go functions that return an error and nothing else of use; `fmt.Print*` and `Close` are ignored by custom.
pub const GO_STATEMENTS: &[&str] = &[
    "os.Remove", "os.RemoveAll", "os.Mkdir", "os.MkdirAll", "os.Rename", "os.Chdir", "os.Chmod", "os.Chown", "os.Setenv",
    "os.WriteFile", "ioutil.WriteFile", "os.Symlink", "os.Link", "os.Truncate", "json.Unmarshal", "xml.Unmarshal",
    "yaml.Unmarshal", "proto.Unmarshal", "io.Copy", "io.WriteString", "http.ListenAndServe", "http.ListenAndServeTLS",
    "http.Serve", "binary.Read", "binary.Write", "filepath.Walk", "filepath.WalkDir", "syscall.Kill", "rand.Read",
];

/// Methods of the same sort.
pub const GO_METHODS: &[&str] =
    &["Unmarshal", "Decode", "Encode", "Commit", "ListenAndServe", "ListenAndServeTLS", "Exec", "ExecContext", "Scan", "Truncate"];

/// Packages of the standard library whose functions end their results with an error.
pub const GO_PACKAGES: &[&str] = &[
    "strconv", "os", "io", "ioutil", "json", "xml", "yaml", "url", "net", "exec", "filepath", "sql", "base64", "hex", "user",
    "http", "regexp", "tls", "x509", "pem", "gzip", "zip", "rand", "template", "hex", "csv", "mail",
];

/// Functions of these packages whose last result is something else.
pub const GO_NO_ERROR: &[&str] = &["LookupEnv", "Cut", "Split", "CutPrefix", "CutSuffix", "Decode", "SplitHostPort", "FromContext", "ParseHTTPVersion", "BasicAuth"];

/// Methods whose last result is an error.
pub const GO_BLANK_METHODS: &[&str] = &[
    "ReadAll", "ReadFile", "Query", "QueryContext", "Exec", "ExecContext", "Prepare", "Begin", "BeginTx", "Marshal",
    "MarshalIndent", "MarshalJSON", "ParseInt", "ParseFloat", "ParseBool", "ParseUint", "Atoi", "NewRequest", "Dial",
    "DialContext", "Listen", "Accept", "Stat", "Lstat", "Output", "CombinedOutput", "ReadString", "ReadBytes", "ParseDuration", "RowsAffected", "LastInsertId",
];

/// Rust functions and methods whose `let _ =` or `.ok();` hides a failure that matters.
pub const RUST_FALLIBLE: &[&str] = &[
    "remove_file", "remove_dir", "remove_dir_all", "create_dir", "create_dir_all", "rename", "copy", "write", "write_all",
    "set_permissions", "sync_all", "sync_data", "set_len", "hard_link", "symlink", "kill", "set_current_dir", "flush", "commit", "persist",
];

/// Calls in front of `unwrap` that fail only after another thread's panic.
pub const RUST_POISON: &[&str] = &["lock", "read", "write", "join", "into_inner", "get_mut", "wait", "wait_while", "borrow", "borrow_mut", "try_borrow"];

/// C functions whose return value is the only sign of a failure.
pub const C_STATEMENTS: &[&str] = &[
    "malloc", "calloc", "realloc", "fopen", "fread", "fgets", "read", "write", "pread", "pwrite", "recv", "open", "chdir", "chroot", "setuid", "setgid",
    "seteuid", "setegid", "ftruncate", "truncate", "pipe", "dup2", "fscanf", "scanf", "sscanf", "system", "pthread_create",
    "fork", "mmap", "socket", "bind", "listen", "accept", "connect", "rename", "strdup", "asprintf", "fseek", "realpath", "posix_memalign",
];

/// C functions that return a null pointer when they fail.
pub const C_POINTERS: &[&str] =
    &["malloc", "calloc", "realloc", "strdup", "strndup", "fopen", "fdopen", "freopen", "opendir", "popen", "aligned_alloc", "tmpfile"];

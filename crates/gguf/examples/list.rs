//! Lists the keys and tensors of GGUF files: `cargo run -p dynalm-gguf --example list -- FILE...`
#![allow(clippy::print_stdout)] // printing is what it is for

use dynalm_gguf::{GgufFile, Value};

fn main() {
    for path in std::env::args_os().skip(1) {
        match GgufFile::open(path.as_ref()) {
            Ok(file) => list(&file),
            Err(error) => println!("{}: {error}", path.display()),
        }
    }
}

fn list(file: &GgufFile) {
    println!(
        "{}: version {}, {} bytes",
        file.path().display(),
        file.version(),
        file.file_bytes()
    );
    for (key, value) in file.metadata().iter() {
        match value {
            Value::Array(array) => {
                println!("  {key}: {}, {} elements", array.type_name(), array.len())
            }
            other => println!("  {key}: {other:?}"),
        }
    }
    for tensor in file.tensors() {
        println!(
            "  {} {} {:?}: {} bytes at {}",
            tensor.name, tensor.ggml_type, tensor.dims, tensor.n_bytes, tensor.offset
        );
    }
}

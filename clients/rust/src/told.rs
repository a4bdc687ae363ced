//! The options in force. Most of them redis-rs tells only by the Debug output of its configurations.

use rmpv::Value;

/// The values of the fields, which are given with the names of the options that set them.
pub fn told(debug: &str, fields: &[(&str, &str)]) -> Vec<(String, Value)> {
    let told = fields.iter().filter_map(|(option, field)| {
        let value = field_of(debug, field)?;
        Some(((*option).to_owned(), plain(value)))
    });
    told.collect()
}

/// The first field of that name, to the comma or bracket behind it.
fn field_of<'a>(debug: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = debug.split_once(&format!(" {name}: "))?;
    let mut depth = 0;
    let end = rest.find(|c| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        depth < 0 || (depth == 0 && c == ',')
    });
    Some(rest[..end?].trim_end())
}

fn plain(text: &str) -> Value {
    let text = text
        .strip_prefix("Some(")
        .and_then(|text| text.strip_suffix(')'))
        .unwrap_or(text);
    if text == "None" || text == "\"not set\"" {
        Value::Nil
    } else if let Ok(truth) = text.parse::<bool>() {
        truth.into()
    } else if let Ok(number) = text.parse::<u64>() {
        number.into()
    } else if let Ok(number) = text.parse::<f64>() {
        number.into()
    } else {
        text.into()
    }
}

//! Why no client was created.

#[derive(Debug)]
pub struct Refusal {
    pub kind: &'static str,
    pub field: String,
    pub message: String,
}

impl Refusal {
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("invalid", field, message)
    }

    pub fn login(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("login", field, message)
    }

    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new("unreachable", "", message)
    }

    fn new(kind: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind,
            field: field.into(),
            message: message.into(),
        }
    }
}

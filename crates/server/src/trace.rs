//! The trace that a task was made in, as W3C Trace Context writes it.

/// The most of `tracestate` that anybody is asked to carry.
const STATE_MAX: usize = 512;

/// A trace that somebody is part of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// `traceparent`: the trace and the span, always in the first version.
    pub parent: String,
    /// `tracestate`: what others keep with that trace.
    pub state: Option<String>,
}

impl Trace {
    /// The trace that two headers tell of. What is not written as it should be is left out.
    pub fn read(parent: &str, state: Option<&str>) -> Option<Trace> {
        let mut parts = parent.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_zero = |text: &str| text.bytes().all(|byte| byte == b'0');
        let good = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
        if !good
            || version == "ff"
            || is_zero(trace)
            || is_zero(span)
            || (version == "00" && parts.next().is_some())
        {
            return None;
        }
        let state = state.filter(|state| !state.is_empty() && state.len() <= STATE_MAX);
        Some(Trace { parent: format!("00-{trace}-{span}-{flags}"), state: state.map(str::to_owned) })
    }

    /// The same trace, with another span in it.
    pub fn with_span(&self, span: u64) -> String {
        // Both lie where the first version has them.
        let (trace, flags) = (&self.parent[3..35], &self.parent[53..]);
        format!("00-{trace}-{span:016x}-{flags}")
    }
}

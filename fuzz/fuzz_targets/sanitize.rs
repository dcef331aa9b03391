//! Any text: spans are sorted, apart, inside the text and between characters.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut end = 0;
    for span in bastion_sanitize::scan(text) {
        assert!(end <= span.start && span.start < span.end);
        assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end));
        end = span.end;
    }
});

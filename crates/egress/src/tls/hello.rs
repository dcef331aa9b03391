//! Whom does a client of TLS say it wants to speak to? Read off its first message, before anything is passed on.
//!
//! RFC 8446 section 4.1.2, the parts that matter here: the record layer, the message's frame, and the extensions
//! `server_name` (RFC 6066) and `encrypted_client_hello` (RFC 9849). Anything that has two readings is refused: two
//! names, two extensions of one kind, bytes left over.

/// A ClientHello may be this many bytes long with its record headers; one with hybrid key exchange has about 2 KiB.
pub(crate) const MAX_HELLO_BYTES: usize = 16 << 10;

const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
/// `encrypted_client_hello`, its drafts that were deployed, and the ESNI that they replaced.
const ENCRYPTED: [u16; 5] = [0xfe0d, 0xfe08, 0xfe09, 0xfe0a, 0xffce];

/// What a ClientHello says about its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The name, as it was sent.
    pub(crate) name: Option<String>,
    /// Whether there is another name in it that only the server can read. Clients also send this without having one.
    pub(crate) encrypted: bool,
}

/// What came is no ClientHello that has one reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no ClientHello of TLS that has one reading")]
pub(crate) struct HelloFault;

impl Hello {
    /// Reads the first bytes of a connection. `None`: there is more to come.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>, HelloFault> {
        let mut message = Vec::new();
        let mut rest = bytes;
        loop {
            let complete = message_length(&message)?;
            if let Some(length) = complete {
                match message.len() {
                    have if have == length => break,
                    // nothing may follow in the same record: keys change here
                    have if have > length => return Err(HelloFault),
                    _ => {}
                }
            }
            if rest.first().is_some_and(|kind| *kind != HANDSHAKE_RECORD)
                || rest.get(1).is_some_and(|major| *major != 3)
                || bytes.len() > MAX_HELLO_BYTES
            {
                return Err(HelloFault);
            }
            let Some((header, after)) = rest.split_first_chunk::<5>() else { return Ok(None) };
            let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
            if length == 0 || length > MAX_HELLO_BYTES {
                return Err(HelloFault);
            }
            if after.len() < length {
                return Ok(None);
            }
            let (fragment, next) = after.split_at(length);
            message.extend_from_slice(fragment);
            rest = next;
        }
        body(Reader(message.get(4..).ok_or(HelloFault)?)).map(Some)
    }
}

/// The length of a handshake message with its header, once that is there.
fn message_length(message: &[u8]) -> Result<Option<usize>, HelloFault> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(HelloFault);
    }
    let Some(header) = message.first_chunk::<4>() else { return Ok(None) };
    let length = usize::from(header[1]) << 16 | usize::from(header[2]) << 8 | usize::from(header[3]);
    if length > MAX_HELLO_BYTES { Err(HelloFault) } else { Ok(Some(length + 4)) }
}

fn body(mut hello: Reader<'_>) -> Result<Hello, HelloFault> {
    hello.take(2 + 32)?; // version, random
    hello.vector8()?; // session
    hello.vector16()?; // cipher suites
    hello.vector8()?; // compression
    let mut found = Hello { name: None, encrypted: false };
    if hello.0.is_empty() {
        return Ok(found);
    }
    let mut extensions = Reader(hello.vector16()?);
    hello.end()?;
    let mut named = false;
    while !extensions.0.is_empty() {
        let kind = extensions.u16()?;
        let data = extensions.vector16()?;
        if kind == SERVER_NAME {
            if std::mem::replace(&mut named, true) {
                return Err(HelloFault);
            }
            found.name = Some(server_name(data)?);
        }
        found.encrypted |= ENCRYPTED.contains(&kind);
    }
    Ok(found)
}

fn server_name(data: &[u8]) -> Result<String, HelloFault> {
    let mut data = Reader(data);
    let mut list = Reader(data.vector16()?);
    data.end()?;
    if list.take(1)? != [0] {
        return Err(HelloFault);
    }
    let name = list.vector16()?;
    list.end()?;
    match std::str::from_utf8(name) {
        Ok(name) if !name.is_empty() && name.is_ascii() => Ok(name.to_owned()),
        _ => Err(HelloFault),
    }
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, length: usize) -> Result<&'b [u8], HelloFault> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(HelloFault)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, HelloFault> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn vector8(&mut self) -> Result<&'b [u8], HelloFault> {
        let length = usize::from(self.take(1)?[0]);
        self.take(length)
    }

    fn vector16(&mut self) -> Result<&'b [u8], HelloFault> {
        let length = usize::from(self.u16()?);
        self.take(length)
    }

    fn end(&self) -> Result<(), HelloFault> {
        if self.0.is_empty() { Ok(()) } else { Err(HelloFault) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &u16::try_from(data.len()).unwrap().to_be_bytes(), data].concat()
    }

    fn names(names: &[&str]) -> Vec<u8> {
        let list: Vec<u8> = names
            .iter()
            .flat_map(|name| [&[0][..], &u16::try_from(name.len()).unwrap().to_be_bytes(), name.as_bytes()].concat())
            .collect();
        extension(0, &[&u16::try_from(list.len()).unwrap().to_be_bytes()[..], &list].concat())
    }

    fn message(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
        body.extend(extensions);
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[1, length[1], length[2], length[3]][..], &body].concat()
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        message
            .chunks(size)
            .flat_map(|part| [&[22, 3, 1][..], &u16::try_from(part.len()).unwrap().to_be_bytes(), part].concat())
            .collect()
    }

    #[test]
    fn a_name_is_read_however_it_is_cut() {
        let hello = message(&[extension(43, &[2, 3, 4]), names(&["api.example"])].concat());
        for size in [1, 3, 40, 4096] {
            let bytes = records(&hello, size);
            for cut in 0..bytes.len() {
                assert_eq!(Hello::parse(&bytes[..cut]), Ok(None), "{cut} of {size}");
            }
            let read = Hello::parse(&bytes).unwrap().unwrap();
            assert_eq!(read, Hello { name: Some("api.example".to_owned()), encrypted: false });
        }
    }

    #[test]
    fn what_is_missing_or_encrypted_is_told() {
        let plain = Hello::parse(&records(&message(&[]), 4096)).unwrap().unwrap();
        assert_eq!(plain, Hello { name: None, encrypted: false });
        for kind in ENCRYPTED {
            let hello = message(&[names(&["a.example"]), extension(kind, &[0; 9])].concat());
            assert!(Hello::parse(&records(&hello, 4096)).unwrap().unwrap().encrypted);
        }
    }

    #[test]
    fn what_has_two_readings_is_refused() {
        let twice = [names(&["a.example"]), names(&["b.example"])].concat();
        let mut left_over = message(&names(&["a.example"]));
        left_over.push(0);
        let mut long = records(&message(&[]), 4096);
        long[3] = 0xff;
        for bytes in [
            records(&message(&twice), 4096),
            records(&message(&names(&["a.example", "b.example"])), 4096),
            records(&message(&names(&[""])), 4096),
            records(&message(&names(&["ä.example"])), 4096),
            records(&left_over, 4096),
            long,
            b"SSH-2.0-x\r\n".to_vec(),
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            vec![22, 2, 0, 0, 4],
            vec![22, 3, 1, 0, 0],
            vec![22, 3, 1, 0, 4, 2, 0, 0, 0],
            vec![22, 3, 1, 0, 4, 1, 0xff, 0, 0],
        ] {
            assert_eq!(Hello::parse(&bytes), Err(HelloFault), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), size in 1_usize..300) {
            let _ = Hello::parse(&bytes);
            let mut framed = vec![1, 0, 0, u8::try_from(bytes.len()).unwrap_or(255)];
            framed.extend(&bytes);
            let _ = Hello::parse(&records(&framed, size));
        }
    }
}

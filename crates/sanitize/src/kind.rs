//! Which kinds of personal value the rules know, and the names they bear in tokens and reports.

use std::{fmt, str::FromStr};

/// A kind of personal value. The order is the order of report tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An e-mail address (RFC 5322, RFC 6531).
    Email,
    /// A telephone number (ITU-T E.164 and national forms).
    Phone,
    /// A bank account number (ISO 13616).
    Iban,
    /// A payment card number (ISO/IEC 7812).
    CreditCard,
    /// A number that a state gives to a person.
    NationalId,
    /// An IPv4 or IPv6 address.
    Ip,
    /// A hardware address (EUI-48, EUI-64).
    Mac,
    /// A URL that carries a user name and password.
    UrlCred,
    /// A key, token or password.
    Secret,
    /// An address of a cryptocurrency.
    Crypto,
    /// A value-added tax number.
    VatId,
    /// A date of birth.
    Dob,
    /// A passport number.
    Passport,
    /// A driving licence number.
    DriverLicense,
    /// A vehicle's registration mark.
    Plate,
    /// A postal code.
    PostalCode,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Self; 16] = [
        Self::Email,
        Self::Phone,
        Self::Iban,
        Self::CreditCard,
        Self::NationalId,
        Self::Ip,
        Self::Mac,
        Self::UrlCred,
        Self::Secret,
        Self::Crypto,
        Self::VatId,
        Self::Dob,
        Self::Passport,
        Self::DriverLicense,
        Self::Plate,
        Self::PostalCode,
    ];

    /// The name in tokens and reports: upper-case ASCII letters and `_`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Email => "EMAIL",
            Self::Phone => "PHONE",
            Self::Iban => "IBAN",
            Self::CreditCard => "CREDIT_CARD",
            Self::NationalId => "NATIONAL_ID",
            Self::Ip => "IP",
            Self::Mac => "MAC",
            Self::UrlCred => "URL_CRED",
            Self::Secret => "SECRET",
            Self::Crypto => "CRYPTO",
            Self::VatId => "VAT_ID",
            Self::Dob => "DOB",
            Self::Passport => "PASSPORT",
            Self::DriverLicense => "DRIVER_LICENSE",
            Self::Plate => "PLATE",
            Self::PostalCode => "POSTAL_CODE",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no [`Kind`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no kind of personal value; the kinds are EMAIL, PHONE, IBAN and so on (see docs/sanitize.md)")]
pub struct UnknownKind {
    /// The name as it was given.
    pub name: String,
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or_else(|| UnknownKind { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for kind in Kind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!("email".parse::<Kind>().is_err());
    }
}

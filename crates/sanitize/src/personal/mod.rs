//! The kinds that only context tells: dates of birth, passports, driving licences, plates, postal codes; and records.

mod birth;
mod document;
mod months;
mod place;
mod record;

use crate::{
    Kind,
    rules::RuleInfo,
    scanner::{Hit, Spot},
};
pub(crate) use record::rows;

const DOB: &str = "dob.keyed";
const DOB_ROW: &str = "dob.row";
const PASSPORT: &str = "passport.keyed";
const LICENSE: &str = "license.keyed";
const PLATE: &str = "plate.keyed";
const POSTAL: &str = "postal.keyed";

pub(crate) const RULES: &[RuleInfo] = &[
    RuleInfo::new(
        DOB,
        Kind::Dob,
        "ISO 8601 and the date forms of CLDR (numeric, long, East Asian) beside a word for birth",
    ),
    RuleInfo::new(
        DOB_ROW,
        Kind::Dob,
        "A date as a whole field of a record that holds a national id, account or address",
    ),
    RuleInfo::new(
        PASSPORT,
        Kind::Passport,
        "ICAO 9303-4 (up to nine signs) and the issuing states' forms, behind a keyword",
    ),
    RuleInfo::new(
        LICENSE,
        Kind::DriverLicense,
        "AAMVA D20 forms of the US states, DVLA driver number, EU licences (Directive 2006/126/EC field 5), behind a keyword",
    ),
    RuleInfo::new(
        PLATE,
        Kind::Plate,
        "Vienna Convention on Road Traffic annex 2 and the national registration schemes, behind a keyword",
    ),
    RuleInfo::new(POSTAL, Kind::PostalCode, "UPU S42 postal code structures, behind a keyword"),
];

pub(crate) fn find(spot: &Spot, hits: &mut Vec<Hit>) {
    hits.extend(birth::find(spot));
    hits.extend(document::passport(spot));
    hits.extend(document::license(spot));
    hits.extend(place::plate(spot));
    hits.extend(place::postal(spot));
}

/// Whether all letters among the bytes are capitals: values are printed so, words are not.
fn capitals(text: &[u8]) -> bool {
    !text.iter().any(u8::is_ascii_lowercase)
}

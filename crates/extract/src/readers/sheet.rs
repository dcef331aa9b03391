//! Spreadsheets of Microsoft Excel.
//!
//! The office library shows numbers as Excel does and finds comments, text boxes and charts, but lays every sheet out as
//! a dense grid and leaves out a sheet that is too wide for one. So the cells are looked at first, one by one: a book
//! with a sheet whose used area is large and nearly empty is printed here, cell by cell, in memory that grows with its
//! cells and not with its area.

use std::fmt::Write;
use std::io::Cursor;

use calamine::{Data, DataRef, Reader, Xlsb, Xlsx};

use crate::Kind;
use crate::readers::{Budget, Found, Read, Refusal, office};

/// A used area of more cells than this is printed cell by cell.
const DENSE: u64 = 2_000_000;

/// An Excel book.
pub(super) fn read(kind: Kind, bytes: Vec<u8>, budget: &Budget) -> Read {
    let sparse = match kind {
        Kind::Xlsx => with_xlsx(&bytes, |book| sheets(book, budget)),
        Kind::Xlsb => with_xlsb(&bytes, |book| sheets(book, budget)),
        _ => Ok(None),
    }?;
    match sparse {
        Some(found) => Ok(found),
        None => office::read(kind, bytes),
    }
}

/// One sheet's cells, in the order of the file.
type Visit<'a> = &'a mut dyn FnMut(u32, u32, &DataRef<'_>) -> Result<(), Refusal>;

/// What the two kinds of book have in common.
trait Book {
    fn names(&self) -> Vec<String>;
    fn cells(&mut self, sheet: &str, visit: Visit<'_>) -> Result<(), Refusal>;
}

impl Book for Xlsx<Cursor<&[u8]>> {
    fn names(&self) -> Vec<String> {
        self.sheet_names()
    }

    fn cells(&mut self, sheet: &str, visit: Visit<'_>) -> Result<(), Refusal> {
        // A chart sheet has no cells.
        let Ok(mut reader) = self.worksheet_cells_reader(sheet) else { return Ok(()) };
        while let Ok(Some(cell)) = reader.next_cell() {
            let (row, column) = cell.get_position();
            visit(row, column, cell.get_value())?;
        }
        Ok(())
    }
}

impl Book for Xlsb<Cursor<&[u8]>> {
    fn names(&self) -> Vec<String> {
        self.sheet_names()
    }

    fn cells(&mut self, sheet: &str, visit: Visit<'_>) -> Result<(), Refusal> {
        let Ok(mut reader) = self.worksheet_cells_reader(sheet) else { return Ok(()) };
        while let Ok(Some(cell)) = reader.next_cell() {
            let (row, column) = cell.get_position();
            visit(row, column, cell.get_value())?;
        }
        Ok(())
    }
}

fn with_xlsx<T>(
    bytes: &[u8],
    read: impl FnOnce(&mut dyn Book) -> Result<Option<T>, Refusal>,
) -> Result<Option<T>, Refusal> {
    // What can't be opened here can't be there either; the office library says why.
    Xlsx::new(Cursor::new(bytes)).map_or(Ok(None), |mut book| read(&mut book))
}

fn with_xlsb<T>(
    bytes: &[u8],
    read: impl FnOnce(&mut dyn Book) -> Result<Option<T>, Refusal>,
) -> Result<Option<T>, Refusal> {
    Xlsb::new(Cursor::new(bytes)).map_or(Ok(None), |mut book| read(&mut book))
}

/// The book cell by cell if a sheet of it asks for that, else `None`.
fn sheets(book: &mut dyn Book, budget: &Budget) -> Result<Option<Found>, Refusal> {
    let names = book.names();
    let mut sparse = false;
    for name in &names {
        sparse |= is_sparse(book, name)?;
    }
    if !sparse {
        return Ok(None);
    }
    let mut text = String::new();
    for name in &names {
        let _ = write!(text, "\n\n## {name}\n");
        print(book, name, &mut text, budget)?;
    }
    Ok(Some(Found { text, pages: u32::try_from(names.len()).ok(), title: None, reader: "sheet" }))
}

fn is_sparse(book: &mut dyn Book, sheet: &str) -> Result<bool, Refusal> {
    let (mut first, mut last) = ((u32::MAX, u32::MAX), (0, 0));
    book.cells(sheet, &mut |row, column, value| {
        if !matches!(value, DataRef::Empty) {
            first = (first.0.min(row), first.1.min(column));
            last = (last.0.max(row), last.1.max(column));
        }
        Ok(())
    })?;
    let side = |from: u32, to: u32| u64::from(to.saturating_sub(from)) + 1;
    Ok(first.0 != u32::MAX && side(first.0, last.0) * side(first.1, last.1) > DENSE)
}

/// A line per row, ` | ` between two cells; empty cells and rows leave no trace.
fn print(book: &mut dyn Book, sheet: &str, text: &mut String, budget: &Budget) -> Result<(), Refusal> {
    let mut current = None;
    book.cells(sheet, &mut |row, _, value| {
        if matches!(value, DataRef::Empty) {
            return Ok(());
        }
        text.push_str(if current == Some(row) { " | " } else { "\n" });
        current = Some(row);
        let _ = write!(text, "{}", Data::from(value.clone()));
        if text.len() as u64 / 4 > budget.max_chars {
            return Err(Refusal::TooLarge("more characters than max_doc_chars"));
        }
        Ok(())
    })
}

//! `17/May/2015:10:05:03 +0000`.

use hotgate_detector::Time;
use jiff::{civil, tz::Offset};

/// The length of a date, in bytes; every field has a fixed place.
pub(super) const DATE_BYTES: usize = "17/May/2015:10:05:03 +0000".len();

const MONTHS: [&[u8]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

/// Whether `bytes` are shaped like a date; the day may still not exist.
pub(super) fn has_shape(bytes: &[u8; DATE_BYTES]) -> bool {
    bytes.iter().zip(b"00/Aaa/0000:00:00:00 +0000").all(|(byte, shape)| match shape {
        b'0' => byte.is_ascii_digit(),
        b'A' | b'a' => byte.is_ascii_alphabetic(),
        b'+' => matches!(byte, b'+' | b'-'),
        literal => byte == literal,
    })
}

/// The time that a date of the right shape names, since the unix epoch; `None` if its day, hour or
/// zone does not exist, or it lies before 1970 or after 2554, beyond what [`Time`] holds.
pub(super) fn read(bytes: &[u8; DATE_BYTES]) -> Option<Time> {
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().try_fold(0_i16, |number, digit| {
            number.checked_mul(10)?.checked_add(i16::from(digit.checked_sub(b'0')?))
        })
    };
    let small = |from: usize| i8::try_from(number(from, from + 2)?).ok();
    let month = MONTHS.iter().position(|month| bytes[3..6].eq_ignore_ascii_case(month))?;
    let month = i8::try_from(month + 1).ok()?;
    // A leap second is the second after the 59th.
    let (second, leap) = match small(18)? {
        60 => (59, 1),
        second => (second, 0),
    };
    let date =
        civil::DateTime::new(number(7, 11)?, month, small(0)?, small(12)?, small(15)?, second, 0);
    let offset = zone(bytes[21], small(22)?, small(24)?)?;
    let seconds = offset.to_timestamp(date.ok()?).ok()?.as_second() + leap;
    u64::try_from(seconds).ok()?.checked_mul(1_000_000_000).map(Time::from_nanos)
}

fn zone(sign: u8, hours: i8, minutes: i8) -> Option<Offset> {
    if minutes > 59 {
        return None;
    }
    let seconds = i32::from(hours) * 3600 + i32::from(minutes) * 60;
    Offset::from_seconds(if sign == b'-' { -seconds } else { seconds }).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(text: &str) -> Option<u64> {
        let bytes: &[u8; DATE_BYTES] = text.as_bytes().try_into().unwrap();
        assert!(has_shape(bytes), "{text}");
        read(bytes).map(|time| time.as_nanos() / 1_000_000_000)
    }

    /// C35, C105: the offset in each line is honoured.
    #[test]
    fn a_date_with_its_offset_is_one_moment() {
        let table = [
            ("01/Jan/1970:00:00:00 +0000", Some(0)),
            ("17/May/2015:10:05:03 +0000", Some(1_431_857_103)),
            ("17/May/2015:12:05:03 +0200", Some(1_431_857_103)),
            ("17/May/2015:05:35:03 -0430", Some(1_431_857_103)),
            ("29/Feb/2016:00:00:00 +0000", Some(1_456_704_000)),
            ("29/Feb/2000:00:00:00 +0000", Some(951_782_400)),
            ("31/dec/2016:23:59:60 +0000", Some(1_483_228_800)),
            ("25/Oct/2015:02:59:59 +0200", Some(1_445_734_799)),
            ("25/Oct/2015:02:00:00 +0100", Some(1_445_734_800)),
        ];
        for (text, expected) in table {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_date_that_does_not_exist_or_cannot_be_held_is_none() {
        let table = [
            "29/Feb/2015:00:00:00 +0000",
            "29/Feb/1900:00:00:00 +0000",
            "31/Apr/2015:00:00:00 +0000",
            "00/May/2015:00:00:00 +0000",
            "17/Mai/2015:00:00:00 +0000",
            "17/May/2015:24:00:00 +0000",
            "17/May/2015:10:60:00 +0000",
            "17/May/2015:10:05:61 +0000",
            "17/May/2015:10:05:03 +0060",
            "17/May/2015:10:05:03 +9900",
            "01/Jan/1970:00:30:00 +0100",
            "31/Dec/1969:23:59:59 +0000",
            "01/Jan/9999:00:00:00 +0000",
        ];
        for text in table {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    proptest! {
        /// An independent calendar: counting days from 1970, year by year.
        #[test]
        fn every_day_is_as_far_from_1970_as_the_years_between_are_long(days in 0_u64..200_000) {
            let leap = |year: u64| {
                year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
            };
            let (mut year, mut left) = (1970, days);
            while left >= 365 + u64::from(leap(year)) {
                left -= 365 + u64::from(leap(year));
                year += 1;
            }
            let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let mut month = 0;
            while left >= lengths[month] {
                left -= lengths[month];
                month += 1;
            }
            let name = String::from_utf8(MONTHS[month].to_vec()).unwrap();
            let text = format!("{:02}/{name}/{year}:23:59:59 +0000", left + 1);
            prop_assert_eq!(seconds(&text), Some(days * 86_400 + 86_399));
        }
    }
}

//! Whose requests a flood is made of.

use std::net::Ipv4Addr;

use super::KEYS_OF_A_KIND;

/// Fixed, so that two floods are the same.
const SEED: u64 = 0x5851_f42d_4c95_7f2d;

/// Clients of their own kind, all in 198.18.0.0/15, where the stream has none.
pub(super) struct Named {
    /// Those that go over the limit, by 1.2 to 3 times, with their requests.
    pub(super) over: Vec<Ipv4Addr>,
    over_requests: Vec<u32>,
    /// Those that come as near as 0.5 to 0.98 times.
    below: Vec<Ipv4Addr>,
    below_requests: Vec<u32>,
    /// Those at their limit before the flood.
    pub(super) held: Vec<Ipv4Addr>,
}

impl Named {
    pub(super) fn new(limit: u32) -> Self {
        let keys =
            |kind: u8| (1..).take(KEYS_OF_A_KIND).map(move |n| Ipv4Addr::new(198, 18, kind, n));
        // Evenly from the one share to the other, in hundredths of the limit.
        let requests = |from: u32, to: u32| {
            let steps = u32::try_from(KEYS_OF_A_KIND - 1).expect("a few");
            (0..=steps)
                .map(move |n| limit * (from * (steps - n) + to * n) / (100 * steps))
                .collect()
        };
        Named {
            over: keys(1).collect(),
            over_requests: requests(120, 300),
            below: keys(2).collect(),
            below_requests: requests(50, 98),
            held: keys(3).collect(),
        }
    }

    /// The requests of those that are over and below, in an order of chance.
    pub(super) fn shuffled(&self) -> Vec<Ipv4Addr> {
        let over = self.over.iter().zip(&self.over_requests);
        let below = self.below.iter().zip(&self.below_requests);
        let mut all: Vec<Ipv4Addr> = over
            .chain(below)
            .flat_map(|(key, requests)| std::iter::repeat_n(*key, *requests as usize))
            .collect();
        let mut state = SEED;
        for last in (1..all.len()).rev() {
            // Knuth's generator; Fisher and Yates's shuffle.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let other = usize::try_from(state >> 33).expect("31 bits") % (last + 1);
            all.swap(last, other);
        }
        all
    }
}

/// Clients in an order of chance, none twice.
#[derive(Default)]
pub(super) struct Stream {
    next: u32,
    given: u32,
}

impl Stream {
    pub(super) fn next_key(&mut self) -> Ipv4Addr {
        loop {
            let key = Ipv4Addr::from_bits(scattered(self.next));
            self.next = self.next.wrapping_add(1);
            if !(key.octets()[0] == 198 && key.octets()[1] & 0xfe == 18) {
                self.given += 1;
                return key;
            }
        }
    }

    pub(super) fn given(&self) -> u32 {
        self.given
    }
}

/// Each number once (the finalizer of MurmurHash3, which can be undone).
fn scattered(mut number: u32) -> u32 {
    number ^= number >> 16;
    number = number.wrapping_mul(0x85eb_ca6b);
    number ^= number >> 13;
    number = number.wrapping_mul(0xc2b2_ae35);
    number ^ number >> 16
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_client_comes_twice_and_none_is_a_named_one() {
        let mut stream = Stream::default();
        let clients: HashSet<_> = (0..100_000).map(|_| stream.next_key()).collect();
        assert_eq!((clients.len(), stream.given()), (100_000, 100_000));
        let named = Named::new(10);
        assert!([&named.over, &named.below, &named.held].iter().all(|of_a_kind| {
            of_a_kind.len() == KEYS_OF_A_KIND && of_a_kind.iter().all(|key| !clients.contains(key))
        }));
    }

    #[test]
    fn those_over_the_limit_send_1_2_to_3_times_as_much_and_the_others_less_than_it() {
        let named = Named::new(1_000);
        let requests = named.shuffled();
        let sent = |key| requests.iter().filter(|sent| *sent == key).count();
        assert_eq!((sent(&named.over[0]), sent(&named.over[19])), (1_200, 3_000));
        assert_eq!((sent(&named.below[0]), sent(&named.below[19])), (500, 980));
    }
}

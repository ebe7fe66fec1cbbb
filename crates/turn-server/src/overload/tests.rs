use std::net::UdpSocket as Sender;

use tt_net::Inbox;

use super::*;

const BUFFER: usize = 1 << 17;
const STEP: Nanos = Nanos(30_000_000);

struct Scene {
    socket: UdpSocket,
    inbox: Inbox,
    overload: Overload,
    known: Vec<SocketAddr>,
    now: Nanos,
}

impl Scene {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.set_buffers(BUFFER, true).unwrap();
        let inbox = Inbox::new(512, 64);
        Self { socket, inbox, overload: Overload::default(), known: Vec::new(), now: Nanos::from_secs(1) }
    }

    fn sender() -> Sender {
        Sender::bind("127.0.0.1:0").unwrap()
    }

    fn send(&self, sender: &Sender, count: usize) {
        for _ in 0..count {
            sender.send_to(b"data", self.socket.local_addr()).unwrap();
        }
    }

    fn fill(&self) -> f64 {
        let fill = self.socket.queue_fill().unwrap();
        f64::from(fill.used) / f64::from(fill.size)
    }

    /// Sends until more than half of the buffer is in use.
    fn overflow(&self, sender: &Sender) {
        for _ in 0..1_000 {
            if self.fill() > 0.6 {
                return;
            }
            self.send(sender, 1);
        }
        panic!("the queue stays at {}", self.fill());
    }

    /// Reads everything, and returns how much came from `sender` and from others.
    fn drain(&mut self, sender: &Sender) -> (usize, usize) {
        let from = sender.local_addr().unwrap();
        let mut counts = (0, 0);
        loop {
            let received = self.inbox.receive(&self.socket, 0, 64).unwrap();
            for index in 0..self.inbox.len() {
                if self.inbox.datagram(index).from == from { counts.0 += 1 } else { counts.1 += 1 }
            }
            self.inbox.clear();
            self.overload.note_read(self.now, received.drained);
            if received.drained {
                return counts;
            }
        }
    }

    /// One look after a read that left something, or after what `drain` has noted. Returns whether a share began.
    fn look(&mut self) -> bool {
        self.now = self.now.saturating_add(STEP);
        let known = KnownClients { made: self.known.len() as u64, addresses: &|| self.known.clone() };
        self.overload.look(self.now, &self.socket, &known)
    }

    fn others(&self) -> Option<u32> {
        self.overload.share.as_ref().map(|share| share.others)
    }
}

#[test]
fn a_buffer_that_fills_is_kept_free_for_known_clients() {
    let (mut scene, client, stranger) = (Scene::new(), Scene::sender(), Scene::sender());
    scene.known.push(client.local_addr().unwrap());
    scene.look();
    assert_eq!(scene.others(), None, "an empty buffer");
    scene.overflow(&stranger);
    assert!(scene.overload.note_read(scene.now.saturating_add(LOOK_EVERY), false), "a backlog asks for a look");
    assert_eq!((scene.look(), scene.others()), (true, Some(FIRST_SHARE)));
    scene.drain(&client);
    // Far more than the buffer holds: what the client sends between it is not lost.
    let mut came = (0, 0);
    for _ in 0..50 {
        scene.send(&stranger, 40);
        scene.send(&client, 1);
        if scene.fill() > 0.5 {
            let (of_client, of_others) = scene.drain(&client);
            came = (came.0 + of_client, came.1 + of_others);
        }
    }
    let (of_client, of_others) = scene.drain(&client);
    came = (came.0 + of_client, came.1 + of_others);
    assert_eq!(came.0, 50);
    assert!((350..=650).contains(&came.1), "a quarter of 2,000: {}", came.1);
}

#[test]
fn the_share_of_others_shrinks_while_a_buffer_fills_and_grows_until_everything_passes() {
    let (mut scene, client) = (Scene::new(), Scene::sender());
    scene.known.push(client.local_addr().unwrap());
    scene.overflow(&client);
    scene.look();
    for cut in 1..=8 {
        scene.look();
        assert_eq!(scene.others(), Some((FIRST_SHARE >> (2 * cut)).max(LEAST_SHARE)), "{cut}");
    }
    let mut before = LEAST_SHARE;
    for step in 0..200 {
        scene.drain(&client);
        scene.look();
        match scene.others() {
            Some(others) => {
                let most = if before == LEAST_SHARE { 2 * before } else { before.saturating_add(before / 4) };
                assert!((before..=most).contains(&others), "{others} after {before}");
                before = others;
            }
            None => {
                assert!(step > 60, "slowly beyond what was too much: {step} looks");
                break;
            }
        }
    }
    assert_eq!(scene.others(), None, "it ends with {before}");
    scene.overflow(&Scene::sender());
}

#[test]
fn a_buffer_that_is_being_emptied_takes_no_less() {
    let (mut scene, client) = (Scene::new(), Scene::sender());
    scene.known.push(client.local_addr().unwrap());
    scene.overflow(&client);
    (0..500).for_each(|_| scene.send(&client, 1));
    scene.look();
    // Less is in use at each look, and more than three eighths at the first ones.
    for look in 0..3 {
        let before = scene.fill();
        while scene.fill() > before - 0.05 {
            scene.inbox.receive(&scene.socket, 0, 1).unwrap();
            scene.inbox.clear();
        }
        scene.look();
        assert_eq!(scene.others(), Some(FIRST_SHARE), "{look}: {before}");
    }
    scene.drain(&client);
    (0..2).for_each(|_| assert!(!scene.look()));
    assert_eq!(scene.others(), Some(2 * FIRST_SHARE), "nothing was too much: it grows fast");
}

#[test]
fn a_new_client_is_known_soon() {
    let (mut scene, client) = (Scene::new(), Scene::sender());
    scene.overflow(&Scene::sender());
    scene.look();
    scene.drain(&client);
    scene.known.push(client.local_addr().unwrap());
    (0..4).for_each(|_| assert!(!scene.look()));
    assert_eq!(scene.others(), Some(FIRST_SHARE), "nothing was read: nothing grows");
    scene.send(&client, 40);
    assert_eq!(scene.drain(&client), (40, 0));
}

#[test]
fn too_many_clients_for_a_set_leave_the_socket_as_it_is() {
    let (mut scene, stranger) = (Scene::new(), Scene::sender());
    let address = |n: u32| SocketAddr::new(std::net::Ipv4Addr::from_bits(0x0A00_0000 + n).into(), 9);
    scene.known = (0..40_000).map(address).collect();
    scene.overflow(&stranger);
    assert_eq!((scene.look(), scene.others()), (false, None));
    assert!(!scene.overload.note_read(scene.now.saturating_add(LOOK_EVERY), false), "it is not tried at each read");
}

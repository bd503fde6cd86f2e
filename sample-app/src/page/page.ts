import type { Snapshot } from '../demo/live/snapshot.js';
import { Buttons } from './buttons.js';
import { byId, write } from './dom.js';
import { Frames } from './frames.js';
import { Lanes } from './lanes.js';
import { LockPanel } from './lock-panel.js';
import { NumbersTable } from './numbers.js';
import { ServerClock } from './server-clock.js';
import { inOrder, Stock } from './stock.js';
import { Story } from './story.js';
import { Stream, type Connection } from './stream.js';
import { about } from './words.js';

const CONNECTIONS: Readonly<Record<Connection, string>> = {
  connecting: 'connecting …',
  live: 'live',
  lost: 'the demo does not answer; trying again …',
  over: 'the demo has ended; this is how it was',
};

const clock = new ServerClock();
const [story, stock, lanes, lock] = [new Story(), new Stock(), new Lanes(), new LockPanel()];
const [numbers, buttons] = [new NumbersTable(), new Buttons()];
let snapshot: Snapshot | undefined;
let connection: Connection = 'connecting';
/** When the connection was lost: from then on the page knows nothing, and stands still. */
let lostAt: number | undefined;

const draw = (): boolean => {
  document.body.dataset['connection'] = connection;
  write(byId('connection'), CONNECTIONS[connection]);
  if (!snapshot) return false;
  const now = Math.min(clock.now(), lostAt ?? Infinity);
  const { dataset } = document.body;
  dataset['strategy'] = snapshot.strategy ?? '';
  write(byId('about'), about(snapshot));
  const counts = story.show(snapshot.sentences, now);
  const sales = inOrder(snapshot.sales);
  stock.show(sales);
  numbers.show(sales);
  lock.show(snapshot, now);
  buttons.show(snapshot, connection === 'live');
  const moves = lanes.show(snapshot, now);
  return lostAt === undefined && (moves || counts);
};

const frames = new Frames(draw);
const stream = new Stream({
  onSnapshot(next) {
    clock.hear(next.now);
    snapshot = next;
    frames.want();
  },
  onConnection(next) {
    connection = next;
    lostAt = next === 'live' ? undefined : (lostAt ?? clock.now());
    frames.want();
  },
});

/** A hidden page needs no news. A browser opens only six streams to one server. */
const openIfVisible = (): void => {
  if (document.hidden) stream.close();
  else stream.open();
};

document.addEventListener('visibilitychange', openIfVisible);
openIfVisible();

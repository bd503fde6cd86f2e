// What `npm run test:model` runs: the model as it is, with one kind of fault after the other, and each deliberate
// mistake with the faults that it takes to see it. Processes are 0, 1 and 2; a mask says which of them it is about.

const only = (...numbers) => numbers.reduce((mask, number) => mask | (1 << number), 0);
const all = only(0, 1, 2);

/** Fewer messages are under way at once, fewer names of owners are in use: for what would have too many states. */
const NARROW = { REPLIES: 2, GRANTS: 1, OWNERS: 3 };
const NETWORK = { PROCESSES: 2, BAD_NETWORK: only(1), PROMPT: only(0), ...NARROW };
const STOP = { STOPS: only(0), PROMPT: only(1, 2) };
const NOT_SUBSCRIBED = { NOT_SUBSCRIBED: only(2), PROMPT: only(0, 1) };
const RESTART = { RESTARTS: 1, PROCESSES: 2, PROMPT: all, LATE_GRANTS: only(1), ...NARROW };

/** `watched`: the processes for which it is shown that they have their turn in the end. */
export const RUNS = [
  { name: 'no faults, every order', long: true, defines: {}, watched: [2] },
  {
    name: 'the server gives nothing at times',
    long: true,
    defines: { PLAIN: 1, PROMPT: only(0) },
    watched: [2],
  },
  { name: 'the server refuses to arm a grant', defines: { REFUSES: 1, PROMPT: only(0) }, watched: [2] },
  { name: 'locks are forced', defines: { FORCED: 1, PROMPT: only(0, 1) }, watched: [2] },
  { name: 'sections block their loops', defines: { BLOCKS: all, PROMPT: only(0) }, watched: [] },
  { name: 'one gives up', defines: { GIVES_UP: only(2), PROMPT: only(0) }, watched: [1] },
  { name: 'one stops', defines: STOP, watched: [0, 2] },
  { name: 'one is deaf', defines: NOT_SUBSCRIBED, watched: [0, 2] },
  {
    name: 'one stops, one hears late or never, one gives up',
    defines: {
      STOPS: only(0),
      LATE_GRANTS: only(1),
      GIVES_UP: only(2),
      PROMPT: all,
      ...NARROW,
    },
    watched: [1],
  },
  { name: 'one loses its network, of two', long: true, defines: { ...NETWORK, HEALS: 1 }, watched: [0] },
  { name: 'the server starts again with old data', defines: { ...RESTART, LATE_GRANTS: 0 }, watched: [1] },
  {
    name: 'the same, and one hears late or never',
    long: true,
    defines: { ...RESTART, LEASE: 4, PROVISIONAL_LEASE: 3 },
    watched: [],
  },
];

/** Only with `--large`: as many states as the memory and the night hold. */
export const LARGE_RUNS = [
  { name: 'one stops, every order', defines: { STOPS: only(0) }, watched: [0, 2] },
  { name: 'one is deaf, every order', defines: { NOT_SUBSCRIBED: only(2) }, watched: [0, 2] },
  { name: 'locks are forced, every order', defines: { FORCED: 1 }, watched: [2] },
  {
    name: 'one stops, one is deaf, one gives up',
    defines: { STOPS: only(0), NOT_SUBSCRIBED: only(1), GIVES_UP: only(2) },
    watched: [],
  },
  {
    name: 'one loses its network, of three',
    defines: { ...NETWORK, PROCESSES: 3, PROMPT: only(0, 2) },
    watched: [],
  },
  {
    name: 'one stops, one loses its network, one gives up',
    defines: { ...NETWORK, PROCESSES: 3, PROMPT: all, STOPS: only(0), GIVES_UP: only(2) },
    watched: [],
  },
  { name: 'the server starts again, one hears late or never', defines: RESTART, watched: [] },
  { name: 'the same with three', defines: { ...RESTART, PROCESSES: 3 }, watched: [] },
];

/** The promises, each with what spin says when it is broken. */
export const PROMISES = {
  'one believer': /blocked\[j\]/,
  'a kept place is not lost': /mayBeGone/,
  'nobody is passed over': /entryNotSubscribed/,
  'nobody is forgotten in the store': /state\[k\]/,
  'no line stays': /abandoned/,
  'no lost turn': /acceptance cycle/,
};

/** Each takes one rule out. `live`: it is seen as a turn that never comes. */
export const MISTAKES = [
  { name: 'keeping a place inserts', defines: { KEEP_INSERTS: 1, ...NETWORK }, breaks: 'one believer' },
  {
    name: 'an owner is used twice',
    defines: { OWNER_TWICE: 1, ...NETWORK },
    breaks: 'a kept place is not lost',
  },
  {
    name: 'a grant counts from its arrival',
    defines: { COUNTED_FROM_ARRIVAL: 1, ...NETWORK },
    breaks: 'one believer',
  },
  {
    name: 'a message of another run of the server is believed',
    defines: { OTHER_RUN_BELIEVED: 1, ...RESTART },
    breaks: 'one believer',
  },
  {
    name: 'publish before write',
    defines: { PUBLISH_FIRST: 1, REFUSES: 1, PROMPT: only(0, 1) },
    breaks: 'one believer',
  },
  {
    name: 'a retry carries the next acquire, under its owner',
    defines: { RETRY_CARRIES_NEXT: 1, ...NETWORK },
    breaks: 'one believer',
  },
  {
    name: 'the undo of an acquire in doubt leaves its connection open',
    defines: { UNCERTAIN_IGNORED: 1, ...NETWORK, HEALS: 1 },
    breaks: 'nobody is forgotten in the store',
  },
  {
    name: 'a deaf place is removed',
    defines: { NOT_SUBSCRIBED_REMOVED: 1, ...NOT_SUBSCRIBED },
    breaks: 'a kept place is not lost',
  },
  {
    name: 'a dead place is granted again and again',
    defines: { DEAD_AGAIN: 1, ...STOP },
    live: 2,
    breaks: 'no lost turn',
  },
  { name: 'a later place is granted first', defines: { LATER_FIRST: 1 }, breaks: 'nobody is passed over' },
  { name: 'an acquire overtakes the line', defines: { OVERTAKES: 1 }, breaks: 'nobody is passed over' },
  {
    name: 'a lost message is never repaired',
    defines: { NEVER_REPAIRED: 1, ...NOT_SUBSCRIBED },
    live: 2,
    breaks: 'no lost turn',
  },
  {
    name: 'a line without a time to live',
    defines: { QUEUE_WITHOUT_END: 1, ...STOP },
    breaks: 'no line stays',
  },
  {
    name: 'a place without callers',
    defines: { STAYS_QUEUED: 1, GIVES_UP: only(2), PROMPT: only(0, 1) },
    breaks: 'nobody is forgotten in the store',
  },
  {
    name: 'a first lease that a blocked loop outlives',
    defines: { PROVISIONAL_LEASE: 1, BLOCKS: all },
    breaks: 'one believer',
  },
  {
    name: 'a thin grant is not confirmed',
    defines: { THIN_GRANT_BELIEVED: 1, BLOCKS: only(1), ...NETWORK },
    breaks: 'one believer',
  },
];

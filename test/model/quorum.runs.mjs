// The runs of the model of the quorum: as it is, with one kind of fault after the other, and each deliberate mistake with the
// faults that it takes to see it. Nodes are a, b and c; a mask says at which of them faults happen. There are three clients,
// where nothing else is said.

const [A, B, C] = [1, 2, 4];
const TWO = { CLIENTS: 2 };

/** Each run in all its orders. Nodes that nothing sets apart are alike: with equal clocks, one fault at c is one at any. */
export const RUNS = [
  { name: 'quorum: no faults, every order', defines: {} },
  { name: 'quorum: without tokens', defines: { FENCED: 0, RENEWALS: 1 } },
  { name: 'quorum: leases are renewed', long: true, defines: { RENEWALS: 1 } },
  { name: 'quorum: writes come late', long: true, defines: { WRITES: 1 } },
  { name: 'quorum: a clock is ahead', defines: { AHEAD: 4 } },
  { name: 'quorum: two clients propose, a clock is ahead', defines: { CLIENTS: 2, PROPOSES: 1, AHEAD: 4 } },
  { name: 'quorum: tokens are proposed', long: true, defines: { PROPOSES: 1 } },
  {
    name: 'quorum: two clients propose, a clock is ahead, a connection is lost',
    defines: { CLIENTS: 2, PROPOSES: 1, AHEAD: 4, BREAKS: 1 },
  },
  {
    name: 'quorum: two clients propose and renew, a node forgets',
    long: true,
    defines: { CLIENTS: 2, PROPOSES: 2, RENEWALS: 1, FORGETS: 1 },
  },
  { name: 'quorum: a connection is lost', defines: { BREAKS: 1, FAULTY: C } },
  {
    name: 'quorum: a clock is ahead, a connection to that node is lost',
    long: true,
    defines: { AHEAD: 4, BREAKS: 1, FAULTY: B },
  },
  {
    name: 'quorum: a clock is ahead, a connection to another node is lost',
    long: true,
    defines: { AHEAD: 4, BREAKS: 1, FAULTY: A },
  },
  { name: 'quorum: a node forgets', long: true, defines: { FORGETS: 1, FAULTY: C } },
  { name: 'quorum: a client stops', long: true, defines: { STOPS: 1 } },
  {
    name: 'quorum: two clients renew, a clock is ahead, connections are lost',
    defines: { CLIENTS: 2, RENEWALS: 1, AHEAD: 4, BREAKS: 2 },
  },
  {
    name: 'quorum: two clients renew, nodes forget one after the other',
    defines: { CLIENTS: 2, RENEWALS: 2, FORGETS: 2 },
  },
  {
    name: 'quorum: two clients renew, one stops, a node forgets, a connection is lost',
    long: true,
    defines: { CLIENTS: 2, RENEWALS: 1, STOPS: 1, FORGETS: 1, BREAKS: 1 },
  },
];

/** Only with `--large`. */
export const LARGE_RUNS = [
  { name: 'quorum: two connections are lost', defines: { BREAKS: 2 } },
  { name: 'quorum: two connections are lost, a clock is ahead', defines: { BREAKS: 2, AHEAD: 4 } },
  {
    name: 'quorum: leases are renewed, a connection is lost',
    defines: { RENEWALS: 1, BREAKS: 1, FAULTY: C },
  },
  { name: 'quorum: leases are renewed, a node forgets', defines: { RENEWALS: 1, FORGETS: 1, FAULTY: C } },
  { name: 'quorum: nodes forget one after the other', defines: { FORGETS: 2 } },
  {
    name: 'quorum: a client stops, a connection is lost, a node forgets',
    defines: { STOPS: 1, BREAKS: 1, FORGETS: 1 },
  },
];

/** The promises, each with what spin says when it is broken. */
export const PROMISES = {
  'one believer': /state\[j\]!=3/,
  'tokens grow': /newest/,
  'no stale write': /writer/,
  'nobody is forgotten on a node': /hold\[[kn]\]!=/,
  'the key is never dead': /hold\[0\]==0|state\[j\]==5/,
};

/** Each takes one rule out. */
export const MISTAKES = [
  {
    name: 'quorum: a token is committed to just any majority',
    defines: { COMMITS_ANYWHERE: 1, AHEAD: 4 },
    breaks: 'tokens grow',
  },
  {
    name: 'quorum: the token of one node',
    defines: { TOKEN_OF_ONE: 1 },
    breaks: 'tokens grow',
  },
  {
    name: 'quorum: a token that no other node is told of',
    defines: { NEVER_COMMITTED: 1, AHEAD: 4 },
    breaks: 'tokens grow',
  },
  {
    name: 'quorum: a proposal counts as known, whatever the nodes gave',
    defines: { PROPOSAL_COUNTED: 1, PROPOSES: 1 },
    breaks: 'tokens grow',
  },
  {
    name: 'quorum: a proposal in place of a larger token',
    defines: { PROPOSAL_REPLACES: 1, PROPOSES: 1 },
    breaks: 'tokens grow',
  },
  {
    name: 'quorum: a proposal far ahead is taken, and a node forgets',
    defines: { PROPOSED_FAR: 1, PROPOSES: 2, FORGETS: 1, ...TWO },
    breaks: 'tokens grow',
  },
  {
    name: 'quorum: a clock far ahead is believed, and another node forgets',
    defines: { CLOCK_BELIEVED: 1, AHEAD: 4, FORGETS: 1, FAULTY: C },
    breaks: 'tokens grow',
  },
  {
    name: 'quorum: a resource that takes any token',
    defines: { TOKEN_NOT_CHECKED: 1, WRITES: 1 },
    breaks: 'no stale write',
  },
  {
    name: 'quorum: a majority of those that answered',
    defines: { MAJORITY_OF_REPLIES: 1, FENCED: 0, BREAKS: 2 },
    breaks: 'one believer',
  },
  {
    name: 'quorum: a renewal by one node',
    defines: { RENEWED_BY_ONE: 1, FENCED: 0, RENEWALS: 1 },
    breaks: 'one believer',
  },
  {
    name: 'quorum: validity without what asking took',
    defines: { COUNTED_FROM_REPLY: 1, FENCED: 0 },
    breaks: 'one believer',
  },
  {
    name: 'quorum: a node that has restarted counts at once',
    defines: { COUNTS_AT_ONCE: 1, FENCED: 0, FORGETS: 1, FAULTY: C },
    breaks: 'one believer',
  },
  {
    name: 'quorum: what was asked on another connection counts',
    defines: { OTHER_CONNECTION_COUNTS: 1, FENCED: 0, FORGETS: 1, FAULTY: C },
    breaks: 'one believer',
  },
  {
    name: 'quorum: no release on nodes that did not answer',
    defines: { SILENT_NOT_RELEASED: 1, BREAKS: 1 },
    breaks: 'nobody is forgotten on a node',
  },
  {
    name: 'quorum: what is granted late is not given back',
    defines: { LATE_GRANT_KEPT: 1 },
    breaks: 'nobody is forgotten on a node',
  },
  {
    name: 'quorum: a release that forgets the doubt',
    defines: { UNCERTAIN_IGNORED: 1, BREAKS: 1 },
    breaks: 'nobody is forgotten on a node',
  },
  {
    name: 'quorum: a release that forgets the doubt of what a renewal puts back',
    defines: { UNCERTAIN_REPAIR_IGNORED: 1, RENEWALS: 1, BREAKS: 1, ...TWO },
    breaks: 'nobody is forgotten on a node',
  },
  {
    name: 'quorum: what a renewal puts back has no lease',
    defines: { REPAIR_WITHOUT_LEASE: 1, RENEWALS: 1, STOPS: 1, ...TWO },
    breaks: 'the key is never dead',
  },
];

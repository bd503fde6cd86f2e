import { setTimeout as sleep } from 'node:timers/promises';
import { KEY, holder } from '../../faults/directed/tasks.js';
import type { InLaboratory } from '../mistake.js';
import type { Edit } from '../source/edit.js';

/** A deliberate mistake in the quorum, and what the simulation of quorums has to say of it. */
export interface QuorumMistake {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** One of these has to see it. */
  readonly rules: readonly string[];
  /** How it is played on a quorum of three real servers, too. */
  readonly laboratory?: InLaboratory;
}

export const QUORUM_MISTAKES: readonly QuorumMistake[] = [
  {
    name: 'a majority of those that answered',
    edits: [
      {
        in: 'QuorumKind.acquireAtAll',
        find: 'if (grants.length >= majority) return',
        replace: 'if (grants.length > quorumCall.replies.length / 2) return',
      },
      {
        in: 'QuorumKind.grantOf',
        find: 'const { majority } = this.host;',
        replace: 'const majority = grants.length;',
      },
      {
        in: 'commitTokens',
        find: 'const { nodes, majority } = host;',
        replace:
          'const { nodes } = host; const majority = Math.min(host.majority, granting(quorumCall).length);',
      },
    ],
    rules: ['exclusion', 'tokens'],
    laboratory: {
      rules: ['exclusion'],
      async play(stage) {
        stage.hampered(stage.one, 6_000);
        stage.hampered(stage.two, 6_000);
        const [toMajority, toMinority] = [stage.one.linksTo([1, 2]), stage.two.linksTo([0])];
        for (const links of [toMajority, toMinority]) {
          links.refuse();
          links.cut();
        }
        stage.start(stage.two, holder('B'));
        await stage.two.notified('B has it');
        await stage.perform(stage.one, {
          style: 'acquire',
          keys: [KEY],
          waitMs: 300,
          steps: [{ do: 'pause', ms: 50 }],
        });
        stage.two.go('B ends');
      },
    },
  },
  {
    name: 'half of the nodes is enough',
    edits: [{ in: 'majorityOf', find: 'Math.floor(nodes / 2) + 1', replace: 'Math.ceil(nodes / 2)' }],
    rules: ['exclusion', 'tokens'],
  },
  {
    name: 'validity without the time that asking took',
    edits: [
      {
        in: 'TimeInStore.constructor',
        find: 'this.certainUntil = sentAt + countsForMs;',
        replace: 'this.certainUntil = grantedAt + validForMs;',
      },
    ],
    rules: ['exclusion', 'tokens'],
  },
  {
    name: 'validity without drift',
    edits: [
      { in: 'withoutDrift', find: 'Math.floor(ms * (1 - DRIFT_PART)) - DRIFT_MS', replace: 'Math.floor(ms)' },
    ],
    rules: ['exclusion', 'tokens'],
  },
  {
    name: 'no release on nodes that did not answer',
    edits: [
      {
        in: 'QuorumKind.releaseAt',
        find: 'if (uncertain || isGranted)',
        replace: 'if (isGranted)',
      },
    ],
    rules: ['leftovers'],
  },
  {
    name: 'no release on nodes that may have it',
    edits: [
      {
        in: 'QuorumHolds.isNowhereAt',
        find: "return nodeReply?.status === 'failed' && isNotExecuted(nodeReply.failure);",
        replace: "return nodeReply?.status !== 'replied';",
      },
    ],
    rules: ['leftovers'],
  },
  {
    name: 'what is granted late is not given back',
    edits: [
      {
        in: 'QuorumKind.refused',
        find: 'quorumCall.onEach((nodeReply) => this.releaseAt(requested, nodeReply, until));',
        replace:
          'for (const nodeReply of quorumCall.nodeReplies) this.releaseAt(requested, nodeReply, until);',
      },
    ],
    rules: ['leftovers'],
  },
  {
    name: 'a token from one node',
    edits: [
      {
        in: 'commitTokens',
        find: 'Math.max(...granting(quorumCall).map(({ grant }) => grant.token!))',
        replace: 'granting(quorumCall)[0]!.grant.token!',
      },
    ],
    rules: ['tokens', 'writes'],
  },
  {
    name: 'a token that nobody else is told of',
    edits: [{ in: 'commitTokens', find: 'if (token === first) return', replace: 'if (token! > 0) return' }],
    rules: ['tokens', 'writes'],
  },
  {
    name: 'a token that is committed to just any majority',
    edits: [
      {
        in: 'commitTokens',
        find: "if (nodeReply.status === 'failed') failed(nodeReply.node, nodeReply.failure);",
        replace: "if (nodeReply.status === 'failed') commitAt(nodeReply.node, {} as Grant);",
      },
      {
        in: 'commitTokens',
        find: 'else count(false);',
        replace: 'else commitAt(nodeReply.node, {} as Grant);',
      },
      {
        in: 'ExclusiveHolds.commit',
        find: 'if (this.find(claim.finalKey)?.owner !== claim.owner) return false;',
        replace: '',
      },
    ],
    rules: ['tokens', 'writes'],
  },
  {
    name: 'a proposed token that counts as known, whatever the nodes gave',
    edits: [
      {
        in: 'commitTokens',
        find: 'if (token === first) return',
        replace: 'if ((claim as { leastToken?: number }).leastToken! > 0 || token === first) return',
      },
    ],
    rules: ['tokens', 'writes'],
  },
  {
    name: 'a proposed token in place of a larger one that the node knows',
    edits: [
      {
        in: 'Tokens.reserve',
        find: 'Math.max(this.last + 1, proposedOr(Math.floor(this.clock.wallClockMicros()), claim))',
        replace:
          'claim.leastToken ?? Math.max(this.last + 1, proposedOr(Math.floor(this.clock.wallClockMicros()), claim))',
      },
    ],
    rules: ['tokens', 'writes'],
  },
  {
    name: 'a proposed token that is given and not kept',
    edits: [
      {
        in: 'Tokens.reserve',
        find: 'else this.last = last;',
        replace: 'else if (first !== claim.leastToken) this.last = last;',
      },
    ],
    rules: ['tokens', 'writes'],
  },
  {
    name: 'a proposal of a clock that is off, and nodes that take any',
    edits: [
      {
        in: 'NodeClocks.compare',
        find: 'this.offs.get(node) === undefined',
        replace: 'this.offs.has(node)',
      },
      { in: 'proposedOr', find: 'leastToken <= clock + MAX_PROPOSED_AHEAD', replace: 'leastToken > 0' },
    ],
    rules: ['exclusion', 'tokens', 'writes'],
  },
  {
    name: 'a token of a clock that has jumped is believed',
    edits: [
      { in: 'QuorumNode.acquire', find: 'this.isFarAhead(reply.token)', replace: 'reply.validForMs < 0' },
    ],
    rules: ['exclusion', 'tokens', 'writes'],
  },
  {
    name: 'a token of a clock that has jumped is judged by what was known of the clock before',
    edits: [{ in: 'NodeClocks.lookAgain', find: '[one, one.look()]', replace: '[one, Promise.resolve()]' }],
    rules: ['exclusion', 'tokens', 'writes'],
  },
  {
    name: 'a renewal by one node',
    edits: [
      {
        in: 'QuorumRenewal.isDecided',
        find: "count(i, 'held') >= majority || count(i, 'lost') > most",
        replace: "count(i, 'held') >= 1",
      },
      {
        in: 'QuorumRenewal.extended',
        find: 'if (held.length >= majority) {',
        replace: 'if (held.length >= 1) {',
      },
      { in: 'QuorumRenewal.extended', find: 'reachedBy(majority, held)', replace: 'reachedBy(1, held)' },
      // What a renewal puts back would hide it.
      {
        in: 'QuorumRenewal.takeAgain',
        find: 'if (!record || record.isEnding) return;',
        replace: 'if (record) return;',
      },
    ],
    rules: ['exclusion', 'tokens'],
    laboratory: {
      rules: ['exclusion'],
      async play(stage) {
        stage.start(stage.one, holder('A'));
        await stage.one.notified('A has it');
        // A majority forgets it, and says so at the next renewal.
        for (const { server } of stage.topology.nodes.slice(1)) await server.cli('DEL', stage.finalKey(KEY));
        await stage.requesting(stage.one, 'extend');
        await sleep(150);
        await stage.perform(stage.two, {
          style: 'acquire',
          keys: [KEY],
          waitMs: 1_000,
          steps: [{ do: 'pause', ms: 50 }],
        });
        stage.one.go('A ends');
      },
    },
  },
  {
    name: 'servers that restarted count at once',
    edits: [
      { in: 'QuorumNode.distrust', find: 'if (restsForMs > 0) {', replace: 'if (restsForMs > Infinity) {' },
    ],
    rules: ['exclusion', 'tokens'],
  },
  {
    name: 'what was asked on another connection counts',
    edits: [
      {
        in: 'QuorumNode.judged',
        find: 'if (epoch !== this.serverInfo.epoch) {',
        replace: 'if (epoch > this.serverInfo.epoch) {',
      },
    ],
    rules: ['exclusion', 'tokens'],
  },
  {
    name: 'a release that forgets the doubt',
    edits: [
      {
        in: 'QuorumKind.releaseAt',
        find: 'begin({ claim: requested, uncertain, until })',
        replace: 'begin({ claim: requested, until })',
      },
    ],
    rules: ['leftovers'],
  },
];

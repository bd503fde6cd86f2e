import { describe, expect, it } from 'vitest';
import { resolveCluster } from '../../../lib/stores/redis/cluster/cluster-settings.js';
import { readClusterInfo, readRedirect, readSlots } from '../../../lib/stores/redis/cluster/slots.js';

describe('the slots of a cluster', () => {
  it('are those of the master of each range, whatever replicas stand behind it', () => {
    const reply = [
      [0, 5_460, ['10.0.0.1', 6_379, 'id-1', []], ['10.0.0.4', 6_379, 'id-4', []]],
      [5_461, 16_383, ['10.0.0.2', 6_380, 'id-2', []]],
    ];
    expect(readSlots(reply, 'asked')).toEqual([
      { from: 0, to: 5_460, master: { host: '10.0.0.1', port: 6_379 } },
      { from: 5_461, to: 16_383, master: { host: '10.0.0.2', port: 6_380 } },
    ]);
  });

  it.each([null, '', '?'])('are at the host that was asked, of a server that calls itself %j', (host) => {
    expect(readSlots([[0, 16_383, [host, 7_000]]], 'asked')).toMatchObject([
      { master: { host: 'asked', port: 7_000 } },
    ]);
  });

  it.each([
    ['no list', 'OK'],
    ['a slot that there is not', [[0, 16_384, ['a', 1]]]],
    ['no port', [[0, 1, ['a']]]],
    ['no master', [[0, 1]]],
  ])('are not read from %s', (_, reply) => {
    expect(() => readSlots(reply, 'asked')).toThrow();
  });
});

describe('what a server sends elsewhere', () => {
  it.each([
    ['MOVED 3999 10.0.0.2:6381', { kind: 'MOVED', slot: 3_999, to: { host: '10.0.0.2', port: 6_381 } }],
    ['ASK 3999 redis-2:6381', { kind: 'ASK', slot: 3_999, to: { host: 'redis-2', port: 6_381 } }],
    ['MOVED 3999 ::1:6381', { kind: 'MOVED', slot: 3_999, to: { host: '::1', port: 6_381 } }],
    ['MOVED 3999 :6381', { kind: 'MOVED', slot: 3_999, to: { host: 'asked', port: 6_381 } }],
    ['MOVED 3999 ?:6381', { kind: 'MOVED', slot: 3_999, to: { host: 'asked', port: 6_381 } }],
    ['TRYAGAIN Multiple keys request during rehashing of slot', { kind: 'TRYAGAIN' }],
  ])('is read: %s', (message, redirect) => {
    expect(readRedirect(message, 'asked')).toEqual(redirect);
  });

  it.each(['CLUSTERDOWN Hash slot not served', 'READONLY You can not write', 'ERR MOVED 1 a:1', 'MOVED'])(
    'is no redirect: %s',
    (message) => {
      expect(readRedirect(message, 'asked')).toBeUndefined();
    },
  );

  it('says what a server knows', () => {
    const info = 'cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_current_epoch:17\r\n';
    expect(readClusterInfo(info)).toEqual({ epoch: 17, isOk: true });
    expect(readClusterInfo(info.replace('ok', 'fail'))).toEqual({ epoch: 17, isOk: false });
  });
});

describe('a server of a cluster is connected to', () => {
  const hostFor = (natMap: unknown, at = { host: '10.0.0.1', port: 6_379 }) => {
    const endpoint = resolveCluster({ cluster: ['redis://outside:7000'], natMap }, 1_000)!;
    const { host, port } = endpoint.connect(at).options as { host: string; port: number };
    return `${host}:${port}`;
  };
  const outside = { host: 'outside', port: 7_001 };

  it('where it says that it is', () => {
    expect(hostFor(undefined)).toBe('10.0.0.1:6379');
  });

  it('where natMap says that it is for us, as a table or as a function', () => {
    expect(hostFor({ '10.0.0.1:6379': outside })).toBe('outside:7001');
    expect(hostFor((at: string) => (at === '10.0.0.1:6379' ? outside : null))).toBe('outside:7001');
  });

  it('where it says that it is, when natMap does not name it', () => {
    expect(hostFor({ '10.0.0.9:6379': outside })).toBe('10.0.0.1:6379');
    expect(hostFor(() => null)).toBe('10.0.0.1:6379');
  });
});

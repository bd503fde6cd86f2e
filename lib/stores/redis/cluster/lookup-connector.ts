import { lookup as lookupOfSystem } from 'node:dns';
import { connect as connectPlain, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectByTls } from 'node:tls';
import { AbstractConnector, type ClusterOptions, type RedisOptions } from 'ioredis';

/** Resolves the names of servers, as `dnsLookup` of an ioredis `Cluster` does. */
export type DnsLookup = NonNullable<ClusterOptions['dnsLookup']>;

/** Returns the lookup function for a socket. When `dnsLookup` returns a name, the system resolves that. */
const lookupBy =
  (dnsLookup: DnsLookup): LookupFunction =>
  (hostname, options, done) =>
    dnsLookup(hostname, (error, address) => {
      const family = isIP(address);
      if (error) done(error, '');
      else if (family === 0) lookupOfSystem(address, options, done);
      else if (options.all) done(null, [{ address, family }]);
      else done(null, address, family);
    });

/** Returns the class with which ioredis connects to a host that `dnsLookup` resolves: it has no option for that. */
export const connectorWith = (dnsLookup: DnsLookup): NonNullable<RedisOptions['Connector']> =>
  class LookupConnector extends AbstractConnector {
    private readonly options: RedisOptions;

    constructor(options: unknown) {
      const given = options as RedisOptions;
      super(given.disconnectTimeout ?? 0);
      this.options = given;
    }

    async connect(): Promise<Socket> {
      const { host = 'localhost', port = 6379, family, tls } = this.options;
      const address = { host, port, family, lookup: lookupBy(dnsLookup) };
      this.connecting = true;
      // The client learns of a failure from the stream, once it listens there.
      const stream = tls ? connectByTls({ ...address, ...tls }) : connectPlain(address);
      stream.once('error', (error: Error) => {
        this.firstError = error;
      });
      this.stream = stream;
      return stream;
    }
  };

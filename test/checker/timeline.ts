import type { ErrorSeen, EventOf, HistoryEvent } from './history.js';
import type { Violation } from './violation.js';

/** The history for a person: a line for what happened, by whom, when; violations where they belong. */
export const timelineOf = (events: readonly HistoryEvent[], violations: readonly Violation[]): string => {
  const lines = events.flatMap((event) => {
    const text = describe(event);
    return text === undefined ? [] : [{ at: event.at, who: whoOf(event), text }];
  });
  const marks = violations.map(({ at, rule, text }) => ({
    at,
    who: '!!!!',
    text: `VIOLATION (${rule}) ${text}`,
  }));
  return [...lines, ...marks]
    .sort((a, b) => a.at - b.at)
    .map(({ at, who, text }) => `${at.toFixed(3).padStart(12)}  ${who.padEnd(8)}  ${text}`)
    .join('\n');
};

const whoOf = (event: HistoryEvent): string => {
  if (event.type === 'hold' || event.type === 'armed' || event.type === 'free') return 'store';
  if (event.type === 'register') return 'register';
  return ('process' in event ? event.process : undefined) ?? '*';
};

const permitOf = ({ permits }: { readonly permits?: number | null }): string =>
  permits === undefined ? '' : `one of ${permits ?? 'the'} permits of `;

const modeOf = ({ mode, modes }: EventOf<'call'>): string =>
  modes ? `${JSON.stringify(modes)} of ` : mode ? `to ${mode} ` : '';

const keysOf = (keys: readonly string[]): string => keys.map((key) => `"${key}"`).join(', ');

const formatError = (error: ErrorSeen | undefined): string =>
  error ? `${error.code ?? error.name}` : 'null';

const until = (at: number): string => `until ${at.toFixed(1)}`;

const describe = (event: HistoryEvent): string | undefined => {
  switch (event.type) {
    case 'call':
      return `${event.call} asks for ${permitOf(event)}${modeOf(event)}${keysOf(event.keys)} by ${event.style}, waitMs ${event.waitMs}`;
    case 'abort':
      return `${event.call} is called off`;
    case 'granted':
      return `${event.call} gets ${event.lease}: ${event.parts.map(({ key, token, owner, sharedWith }) => `"${key}" ${sharedWith ? `inside ${sharedWith}` : owner ? `as ${owner}` : `token ${token}`}`).join(', ')}`;
    case 'refused':
      return `${event.call} is refused: ${formatError(event.error)}`;
    case 'believes':
      return `${event.lease} believes in "${event.key}" ${until(event.until)}`;
    case 'claims':
      return `${event.lease} passes for valid: ${event.what}`;
    case 'extends':
      return `${event.lease} asks for ${event.ms} ms`;
    case 'downgrades':
      return `${event.lease} reads on`;
    case 'announced':
      return `${event.lease} is told that it is lost`;
    case 'ended':
      return `${event.lease} ends`;
    case 'result':
      return `${event.lease ?? ''} ${event.doing}: ${event.error ? formatError(event.error) : event.result}`.trim();
    case 'uses':
      return `${event.use} ${event.what} ${event.amount} at ${event.object} "${event.key}"${event.waitMs === undefined ? '' : `, waitMs ${event.waitMs}`}`;
    case 'called off':
      return `${event.use} is called off`;
    case 'used':
      return `${event.use} ${event.error ? `${formatError(event.error)}${event.unknown ? ', outcome unknown' : ''}` : event.result}`;
    case 'request':
      return `  > ${event.request} ${event.what} ${keysOf(event.keys)}`;
    case 'reply':
      return `  < ${event.request} ${event.outcome}`;
    case 'register':
      return `${event.what} of "${event.key}" by ${event.lease}, token ${event.token}: ${event.accepted ? `version ${event.version}` : 'refused'}`;
    case 'hold': {
      const token = event.token === undefined ? 'no token' : `token ${event.token}`;
      const how = event.mode ? ` to ${event.mode}` : '';
      return `${event.owner} has "${event.key}"${how}${event.until === undefined ? '' : ` ${until(event.until)}`}, ${token}`;
    }
    case 'armed':
      return `${event.owner} has "${event.key}" ${until(event.until)}`;
    case 'free':
      return `"${event.key}" of ${event.owner} is free: ${event.how}`;
    case 'unprotected':
      return `${event.why}: ${event.key === undefined ? 'no key' : `"${event.key}" not`} protected ${until(event.until)}`;
    case 'unseen':
      return 'the store ends; what it did last may be unknown';
    case 'old lines':
      return `lines may have places of the past ${until(event.until)}`;
    case 'frozen':
      return `stands still ${until(event.until)}`;
    case 'trouble':
      return `${event.what}; trouble ${until(event.until)}`;
    case 'gone':
      return event.how === 'crashed' ? 'crashes' : 'begins to shut down';
    case 'left':
      return `a hold is left on "${event.key}": ${event.owner}`;
    case 'usage':
      return Object.values(event.sizes).some((size) => size !== 0) ? JSON.stringify(event.sizes) : undefined;
    case 'unhandled':
      return `unhandled: ${event.message}`;
    case 'served':
      return `${event.call} has its lock where writes are accepted`;
    case 'failover':
      return `${event.what}: writes are accepted again ${event.outages.map(({ to }) => `at ${to.toFixed(1)}`).join(', ') || 'at once'}`;
    case 'note':
      return event.text;
  }
};

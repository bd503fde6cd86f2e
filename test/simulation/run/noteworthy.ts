import type { EventType, HistoryEvent } from '../../checker/history.js';

const PLAIN: Partial<Record<EventType, string>> = {
  abort: 'aborted wait',
  announced: 'announced loss',
  frozen: 'pause',
};

/** Returns what an event shows of how far the simulation gets around. */
export const noteworthy = (event: HistoryEvent): string => {
  switch (event.type) {
    case 'refused':
    case 'result':
      if (event.type === 'refused' && !event.error) return 'null of tryAcquire';
      if (event.type === 'result' && event.doing === 'release' && event.lease && !event.error)
        return 'released by hand';
      return event.error ? `code ${event.error.code}` : 'nothing';
    case 'used':
      if (event.error) return `use: ${event.error.code}${event.unknown ? ', unknown' : ''}`;
      return event.result === false ? 'use: false' : 'nothing';
    case 'uses':
      return `use: ${event.what}`;
    case 'extends':
      return event.ms >= 3_600_000 ? 'extension of hours' : 'nothing';
    case 'granted':
      if (event.call.includes('after')) return 'taken afterwards';
      // Permits have names of 32 digits.
      for (const { owner } of event.parts) if (owner) return owner.includes(':') ? 'read lock' : 'permit';
      return event.parts.some(({ sharedWith }) => sharedWith) ? 'nested lease' : 'nothing';
    case 'gone':
      return event.how === 'crashed' ? 'crash' : 'nothing';
    case 'register':
      return event.accepted ? 'nothing' : `refused stale ${event.what}`;
    case 'free':
      return `${event.how} hold`;
    case 'request':
      return event.what === 'undo' ? 'undo' : 'nothing';
    case 'reply':
      // Of several places that were kept at once.
      if (event.outcome.split(' ').includes('gone')) return 'place that is gone';
      if (event.outcome === 'queued') return 'place in line';
      return ['unknown', 'not-executed'].includes(event.outcome) ? `${event.outcome} request` : 'nothing';
    default:
      return PLAIN[event.type] ?? 'nothing';
  }
};

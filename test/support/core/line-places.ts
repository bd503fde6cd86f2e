import { PlaceInLine } from '../../../lib/core/seam/place.js';
import type { PlaceReply, Queued } from '../../../lib/core/seam/reply.js';
import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';

/** A place, and how it was left. */
export const newPlace = () => {
  const left: (StoreFailure | undefined)[] = [];
  const place = new PlaceInLine((doubt) => {
    left.push(doubt);
    return Promise.resolve();
  });
  return { place, left };
};

export const queued = (place: PlaceInLine, position = 0, retryInMs = Infinity): Queued => ({
  status: 'queued',
  place,
  position,
  retryInMs,
});

/** The answer that a place still stands. */
export const stands = (
  position = 0,
  retryInMs = Infinity,
): Extract<PlaceReply, { readonly status: 'queued' }> => ({
  status: 'queued',
  position,
  retryInMs,
});

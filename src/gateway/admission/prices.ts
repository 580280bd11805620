/**
 * What things cost in memory, in bytes. A price is what a thing usually costs here, not the worst that could be.
 * `bun run soak` and `bun run siege` measure each of them.
 */

const KiB = 1024;
const MiB = 1024 * KiB;

/** A call that waits for another server: both of its connections, and the state of its request. 5,000 took 28 KB each. */
export const CALL_BYTES = 28 * KiB;

/** What Bun has read of a response at most when its head is handled. Two buffers of 256 KiB, and reads of up to 512. */
export const READ_AHEAD_BYTES = 1 * MiB;
/** A response whose head waits: what Bun has read, and what the kernel holds for it. 1.4 to 1.8 MB each were measured. */
export const UNREAD_BYTES = 2 * MiB;
/** The least that a response has when its head arrives. It covers the head of the request, too, of which Bun keeps a copy. */
export const LEAST_READ_AHEAD_BYTES = 16 * KiB;
/** A GET of an endpoint that has not responded yet. Most are a few kilobytes of JSON, and some are music. */
export const UNKNOWN_GET_BYTES = 256 * KiB;
/** A change there. Its response is never refused, so heads that wait could hold all that they wait for. */
export const UNKNOWN_CHANGE_BYTES = UNREAD_BYTES;

/** A streamed body whose reader keeps up. 1,200 generations at 16 KB/s took 50 to 60 KB each. */
export const KEEPS_UP_BYTES = 64 * KiB;
/** One whose reader is behind: what Bun has read ahead, what waits to be sent, and both sockets. 2.1 to 2.9 MB each. */
const BEHIND_BYTES = 3200 * KiB;

/** A request while its body arrives, whatever the size of the body. */
export const ARRIVING_BODY_BYTES = 32 * KiB;
/** An upload that is streamed, whatever its length: what Bun reads ahead of the client, and both sockets. 1.4 to 1.8 MB. */
export const UPLOAD_BYTES = 1.75 * MiB;
/** A request body is in memory twice while its chunks are joined, and while it is sent. */
export const BODY_COPIES = 2;

/** A fact about a refresh token: its key, its objects and its slot in the map. */
export const FACT_BYTES = 800;
/** What the allocator takes for each character of a fact's detail, when that is long. */
export const FACT_BYTES_PER_CHARACTER = 1.6;

/** What the body of a response costs. */
export interface BodyPrice {
  /** While its reader keeps up. */
  readonly keepsUp: number;
  /** While its reader does not. */
  readonly behind: number;
  /** In addition during each read. */
  readonly aRead: number;
}

/** Before anything is known of it. */
export const NO_PRICE: BodyPrice = { keepsUp: 0, behind: 0, aRead: 0 };

/** A body that arrives slice by slice. While one is read, the one before may still be on its way to the client. */
export function priceOfSlices(sliceBytes: number): BodyPrice {
  return { keepsUp: 1.5 * sliceBytes, behind: 1.5 * sliceBytes, aRead: sliceBytes };
}

/** @param length in bytes; infinite when it is not known */
export function priceOfStream(length: number): BodyPrice {
  return {
    keepsUp: Math.min(KEEPS_UP_BYTES, 2 * length),
    behind: Math.min(BEHIND_BYTES, 2 * length),
    aRead: 0,
  };
}

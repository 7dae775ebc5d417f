/** What a work queue asks of the record of its controller's writes. */

/** The record of what a controller wrote; a work queue waits for it before each pass. */
export interface OwnWrites {
  /**
   * Resolves once the caches show everything that was written before the call; at once when they do.
   * @throws `StaleCacheError` when they still do not after half a minute
   */
  seen(signal: AbortSignal): Promise<void>;
}

/** All open watches of a server: their time limits, their bookmarks, and their end when it stops. */
import type { Clock, Timer } from "@longshore/runtime";
import type { ApiQuery } from "../api/api-request.ts";
import type { TableWatch } from "./table-watch.ts";

/** Time between bookmarks of an idle watch, in milliseconds. */
const bookmarkPeriodMs = 60_000;

/** Time before the end of a watch at which a last bookmark says where to go on (apiserver, storage/cacher). */
const lastBookmarkMs = 2000;

/** Keeps the open watches. */
export class WatchHub {
  readonly #clock: Clock;
  readonly #open = new Set<TableWatch>();
  readonly #bookmarked = new Set<TableWatch>();
  #bookmarks: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes charge of a watch that has begun. */
  add(watch: TableWatch, query: ApiQuery): void {
    this.#open.add(watch);
    if (query.allowWatchBookmarks === true) {
      this.#bookmarked.add(watch);
      this.#bookmarks ??= this.#clock.timer(bookmarkPeriodMs, () => this.#sendBookmarks());
    }
    const timers = this.#timeLimit(watch, query);
    watch.onEnd = () => {
      for (const timer of timers) timer.cancel();
      this.#open.delete(watch);
      this.#bookmarked.delete(watch);
      if (this.#bookmarked.size === 0) {
        this.#bookmarks?.cancel();
        this.#bookmarks = undefined;
      }
    };
  }

  #timeLimit(watch: TableWatch, { timeoutSeconds = 0, allowWatchBookmarks }: ApiQuery): readonly Timer[] {
    if (timeoutSeconds === 0) return [];
    const limitMs = Math.max(0, timeoutSeconds * 1000);
    const end = this.#clock.timer(limitMs, () => watch.close());
    const lastMs = limitMs - lastBookmarkMs;
    if (allowWatchBookmarks !== true || lastMs < 0) return [end];
    return [end, this.#clock.timer(lastMs, () => watch.bookmark())];
  }

  /** Watches that are open. */
  get size(): number {
    return this.#open.size;
  }

  /** Ends all watches. */
  closeAll(): void {
    for (const watch of [...this.#open]) watch.close();
  }

  #sendBookmarks(): void {
    for (const watch of [...this.#bookmarked]) watch.bookmark();
    this.#bookmarks = this.#clock.timer(bookmarkPeriodMs, () => this.#sendBookmarks());
  }
}

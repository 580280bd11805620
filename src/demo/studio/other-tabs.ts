/** Tells the Studio's other tabs in this browser what they cannot see: they share its account and its loudspeaker. */

/** `account`: tracks, credits or activity may have changed. `sound`: a track begins to play. */
export type TabMessage = 'account' | 'sound';

export interface OtherTabs {
  tell(message: TabMessage): void;
}

const CHANNEL = 'studio';

/** @param onMessage called for what another tab tells, never for what this one does */
export function connectOtherTabs(onMessage: (message: TabMessage) => void): OtherTabs {
  const channel = openChannel();
  channel?.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => onMessage(data));
  return { tell: (message) => channel?.postMessage(message) };
}

/** Undefined if the browser blocks it together with cookies, as Firefox does: then nobody is signed in here. */
function openChannel(): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(CHANNEL);
  } catch {
    return undefined;
  }
}

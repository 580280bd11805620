/** Finds out when an `audio` element leaves some of the network to others. */

/** With so much ahead, the element does not run dry while the rest of a track is fetched a second time. */
const ENOUGH_SECONDS = 30;
const EVENTS = ['progress', 'timeupdate', 'suspend', 'loadstart'] as const;

/**
 * Waits until the element has loaded its source to the end, or far enough ahead. False if it has another source before
 * that.
 */
export function untilLoaded(audio: HTMLAudioElement): Promise<boolean> {
  const { src } = audio;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const look = () => {
    const hasChanged = audio.src !== src;
    if (!hasChanged && secondsAhead(audio) < Math.min(ENOUGH_SECONDS, secondsLeft(audio))) return;
    for (const event of EVENTS) audio.removeEventListener(event, look);
    resolve(!hasChanged);
  };
  for (const event of EVENTS) audio.addEventListener(event, look);
  look();
  return promise;
}

/** The rest of the track; the last bit is left out, because the lengths of container and sound may differ. */
function secondsLeft({ duration, currentTime }: HTMLAudioElement): number {
  return Number.isNaN(duration) ? Number.POSITIVE_INFINITY : duration - currentTime - 0.25;
}

function secondsAhead({ buffered, currentTime }: HTMLAudioElement): number {
  for (let index = 0; index < buffered.length; index++) {
    if (buffered.start(index) <= currentTime && currentTime <= buffered.end(index))
      return buffered.end(index) - currentTime;
  }
  return Number.NEGATIVE_INFINITY;
}

/** Folds what few orders change on a small screen, where the newest track has to be seen without scrolling. */

/** The same as in the styles. */
const SMALL = '(max-width: 47.99rem), (max-height: 55.99rem)';

export function connectOrderOptions(options: HTMLDetailsElement, window: Window): void {
  const small = window.matchMedia(SMALL);
  const fold = () => {
    options.open = !small.matches;
  };
  small.addEventListener('change', fold);
  fold();
}

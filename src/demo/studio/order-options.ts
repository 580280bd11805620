/** Folds what few orders change on a narrow screen, where the newest track has to be seen without scrolling. */

/** The same width as in the styles. */
const NARROW = '(max-width: 47.99rem)';

export function connectOrderOptions(options: HTMLDetailsElement, window: Window): void {
  const narrow = window.matchMedia(NARROW);
  const fold = () => {
    options.open = !narrow.matches;
  };
  narrow.addEventListener('change', fold);
  fold();
}

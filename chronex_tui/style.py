"""How the frames are laid out at each size. Kept as text, so that a single-file build needs no data files."""

from __future__ import annotations

CSS = """
Screen { layout: vertical; background: $background; color: $foreground; overflow: hidden; }
.framed { border: round $line; border-title-color: $foreground; border-subtitle-color: $quiet;
          background: $background; border-title-style: none; padding: 0 1; scrollbar-size-vertical: 1;
          overflow-x: hidden; }
Table.framed { padding: 0; }
.framed:focus { border: round $line-focus; border-title-style: bold; }
.-ascii .framed { border: ascii $line; scrollbar-size-vertical: 0; }
.-ascii .framed:focus { border: ascii $line-focus; }
Container { background: $background; }
#top { height: 2; }
#notice { height: 1; display: none; }
#notice.-shown { display: block; }
#command, #keys { height: 1; }
#body { height: 1fr; }
.view { height: 1fr; width: 1fr; display: none; }
.view.-shown { display: block; }
#filter { display: none; height: 1; border: none; padding: 0 1; background: $panel; }
#filter.-shown { display: block; }

#jobs-upper { height: 1fr; layout: vertical; }
#jobs-left { height: 1fr; width: 1fr; }
#jobs, #empty { height: 1fr; }
#jobs-side { height: 8; width: 1fr; }
#detail { height: 1fr; }
#side-density, #side-clock, #side-timeline, #side-log, #runs-log { display: none; }
#runs-side { height: 9; }
.-tiny #jobs-side, .-tiny #runs-side, .-tiny #heat-cell, .-tiny #command { display: none; }
.-tiny #top { height: 1; }
.-tiny .framed { border: none; }
.-tiny .framed:focus { border: none; }
.-bare #jobs-side, .-bare #side-timeline, .-bare #side-log { display: none; }

.-medium #jobs-upper, .-large #jobs-upper { layout: horizontal; }
.-medium #jobs-left { width: 56%; }
.-medium #jobs-side { width: 44%; height: 1fr; }
.-medium #side-timeline { display: block; height: 8; }
.-medium #side-log { display: block; height: 8; }
.-large #jobs-left { width: 52%; }
.-large #jobs-side { width: 48%; height: 1fr; }
.-large #side-density { display: block; height: 13; }
.-large #side-clock { display: block; height: 9; }
.-large #side-timeline { display: block; height: 10; }
.-large #side-log { display: block; height: 9; }
.-medium.-bare #jobs-left, .-large.-bare #jobs-left { width: 100%; }

.-shown#view-runs { layout: vertical; }
#runs-left { height: 1fr; width: 1fr; }
#runs, #no-runs { height: 1fr; }
.-medium #view-runs, .-large #view-runs { layout: horizontal; }
.-medium #runs-left, .-large #runs-left { width: 58%; }
.-medium #runs-side, .-large #runs-side { width: 42%; height: 1fr; }
.-medium #runs-log, .-large #runs-log { display: block; height: 40%; }
#firing { height: 1fr; }
#lanes, #no-lanes, #clock { height: 1fr; }
#heat { height: 14; }
#heat-cell { height: 1fr; }
.-zoomed { height: 1fr; width: 1fr; }

Modal { align: center middle; background: $background 70%; }
#dialog { width: 76; max-width: 96%; height: auto; max-height: 92%; border: round $line-focus;
          background: $background; border-title-color: $foreground; border-title-style: bold;
          border-subtitle-color: $quiet; padding: 0 1; }
.-ascii #dialog { border: ascii $line-focus; }
#dialog.-wide { width: 110; height: 92%; }
#dialog Panel { height: auto; max-height: 100%; }
#dialog.-wide Panel { height: 1fr; }
#dialog Input { border: none; height: 1; padding: 0; background: $panel; }
#log-title { height: 1; }
#log-body { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; overflow-x: hidden; background: $background; }
Toast { background: $panel; color: $foreground; padding: 0 1; margin: 0 1 1 0; }
Input > .input--cursor { text-style: reverse; }
"""

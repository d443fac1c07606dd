;;; chronex.el --- Schedules where you type them  -*- lexical-binding: t; -*-

;; Emacs 29 and newer have eglot, which starts `chronex lsp` for crontabs, timers and job files by itself once this
;; file is loaded and M-x eglot (or eglot-ensure) is called in such a buffer.
;;
;; A mode has one server in eglot, so YAML, TOML and Python buffers keep theirs: chronex-flymake-mode shows the findings
;; of `chronex lint` there, beside whatever the server of that mode says.

;;; Code:

(require 'flymake)

(defgroup chronex nil "Schedules where you type them." :group 'tools)

(defcustom chronex-program "chronex"
  "The chronex program; it must be able to run `chronex lsp'."
  :type 'string)

(define-derived-mode chronex-crontab-mode prog-mode "Crontab"
  "Major mode for crontabs, for the language server's sake."
  (setq-local comment-start "# "))

(define-derived-mode chronex-toml-mode conf-toml-mode "Chronex"
  "Major mode for chronex.toml: TOML with a language server of its own.")

(define-derived-mode chronex-timer-mode conf-unix-mode "Timer"
  "Major mode for the timers of systemd.")

(add-to-list 'auto-mode-alist '("\\(?:/crontab\\|\\.crontab\\|\\.cron\\|/cron\\.d/[^/]+\\)\\'" . chronex-crontab-mode))
(add-to-list 'auto-mode-alist '("\\(?:/\\|\\.\\)chronex\\.toml\\'" . chronex-toml-mode))
(add-to-list 'auto-mode-alist '("\\(?:\\.timer\\|\\.timer\\.d/[^/]+\\.conf\\)\\'" . chronex-timer-mode))

(defun chronex--server (&rest _)
  "The command that eglot starts."
  (list chronex-program "lsp"))

(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs
               '((chronex-crontab-mode chronex-toml-mode chronex-timer-mode) . chronex--server)))

;; Flymake, for modes that have a server already.

(defconst chronex--line "^\\(?:<stdin>\\|.*?\\):\\([0-9]+\\):\\([0-9]+\\): \\(error\\|warning\\|note\\): \\(.*\\)$")

(defvar-local chronex--process nil)

(defun chronex--flymake (report &rest _)
  "A backend of Flymake: lint the text of this buffer and call REPORT with what was found."
  (when (process-live-p chronex--process)
    (kill-process chronex--process))
  (let ((source (current-buffer))
        (name (or buffer-file-name (buffer-name))))
    (setq chronex--process
          (make-process
           :name "chronex-lint" :noquery t :connection-type 'pipe
           :buffer (generate-new-buffer " *chronex-lint*")
           :command (list chronex-program "lint" "-" "--stdin-filename" name "--format" "gcc" "--exit-zero")
           :sentinel
           (lambda (process _event)
             (when (memq (process-status process) '(exit signal))
               (unwind-protect
                   (when (and (buffer-live-p source)
                              (eq process (buffer-local-value 'chronex--process source)))
                     (funcall report (chronex--findings source (process-buffer process))))
                 (kill-buffer (process-buffer process)))))))
    (process-send-region chronex--process (point-min) (point-max))
    (process-send-eof chronex--process)))

(defun chronex--findings (source output)
  "What OUTPUT says of the buffer SOURCE, for Flymake."
  (let (found)
    (with-current-buffer output
      (goto-char (point-min))
      (while (re-search-forward chronex--line nil t)
        (let* ((line (string-to-number (match-string 1)))
               (column (string-to-number (match-string 2)))
               (type (pcase (match-string 3) ("error" :error) ("warning" :warning) (_ :note)))
               (text (match-string 4))
               (region (flymake-diag-region source line column)))
          (push (flymake-make-diagnostic source (car region) (cdr region) type text) found))))
    (nreverse found)))

;;;###autoload
(define-minor-mode chronex-flymake-mode
  "Show the findings of `chronex lint' in this buffer, beside those of its language server."
  :lighter " Chronex"
  (if chronex-flymake-mode
      (progn (add-hook 'flymake-diagnostic-functions #'chronex--flymake nil t)
             (flymake-mode 1))
    (remove-hook 'flymake-diagnostic-functions #'chronex--flymake t)))

(defun chronex-lint ()
  "Lint the file of this buffer, or the project, in a compilation buffer."
  (interactive)
  (compile (concat (shell-quote-argument chronex-program) " lint --format gcc "
                   (if buffer-file-name (shell-quote-argument buffer-file-name) ""))))

(provide 'chronex)
;;; chronex.el ends here

// What Quartz itself answers: one question a line (expression, zone, after in epoch seconds, how many; tabs between),
// one line of answers each, the epoch seconds with blanks between, or the refusal behind an exclamation mark.
// `java -cp quartz2.jar:slf4j-api.jar NextTimes.java < questions`, with the jars of Debian's libquartz2-java.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.text.ParseException;
import java.util.Date;
import java.util.TimeZone;
import org.quartz.CronExpression;

public class NextTimes {
    public static void main(String[] arguments) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder answers = new StringBuilder();
        for (String question; (question = questions.readLine()) != null; ) {
            answers.append(answer(question.split("\t"))).append('\n');
        }
        System.out.print(answers);
    }

    private static String answer(String[] question) {
        try {
            CronExpression expression = new CronExpression(question[0]);
            expression.setTimeZone(TimeZone.getTimeZone(question[1]));
            StringBuilder found = new StringBuilder();
            Date at = new Date(Long.parseLong(question[2]) * 1000);
            for (int left = Integer.parseInt(question[3]); left > 0; left--) {
                at = expression.getNextValidTimeAfter(at);
                if (at == null) {
                    break;
                }
                found.append(at.getTime() / 1000).append(' ');
            }
            return found.toString().trim();
        } catch (ParseException | RuntimeException refused) {
            return "!" + refused.getMessage().replace('\n', ' ');
        }
    }
}
